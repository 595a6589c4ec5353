// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

const (
	// rebooterContainer, idleContainer and sysctlContainer are the containers, as Soperator has them:
	// docs/contributors/predecessors/soperator-objects.md#nodeconfigurator.
	rebooterContainer = "rebooter"
	idleContainer     = "node-sysctl-sleep"
	sysctlContainer   = "node-sysctl"
	// rebooterHealthPort is where the rebooter answers probes, if the spec has any.
	rebooterHealthPort = ":8081"
	// maxInstance is the length of a label's value.
	maxInstance = 63
)

// allowUserNamespaces lets users make user namespaces, where the kernel has a switch for that, as Debian's has.
const allowUserNamespaces = `f=/proc/sys/kernel/unprivileged_userns_clone; if [ -e "$f" ]; then echo 1 > "$f"; fi`

// idle sleeps until the pod ends. A shell that is process 1 ends on SIGTERM only with a trap.
const idle = `trap 'exit 0' TERM; while :; do sleep 3600 & wait "$!"; done`

// NodeConfiguratorOutput is what a NodeConfigurator becomes.
type NodeConfiguratorOutput struct {
	render.Output
	// Notes are about fields that have another effect than users may expect.
	Notes []string
}

// NodeConfiguratorDaemonSet is the name of the DaemonSet of a NodeConfigurator.
func NodeConfiguratorDaemonSet(name string) string { return name + "-ds" }

// RebooterAccount is the ServiceAccount that is made for the rebooter of a NodeConfigurator that names none.
func RebooterAccount(name string) string { return name + "-rebooter" }

// NodeConfigurator composes the DaemonSet of a NodeConfigurator, and the ServiceAccount of its rebooter where the spec names none.
func NodeConfigurator(n *nebiusv1alpha1.NodeConfigurator, images image.Set) NodeConfiguratorOutput {
	c := &configurator{object: n, spec: &n.Spec, images: images, set: label.Set{Name: nebiusv1alpha1.NameNodeConfigurator, Instance: n.Name, Component: nebiusv1alpha1.NameNodeConfigurator}}
	c.keepImages = images.KeepSoperators
	if len(n.Name) > maxInstance {
		c.fail("metadata.name", "must have at most %d characters, since it is the value of a label", maxInstance)
	}
	pod := c.pod()
	var out NodeConfiguratorOutput
	if c.makesAccount {
		out.Add(&corev1.ServiceAccount{ObjectMeta: c.meta(pod.ServiceAccountName)})
	}
	labels := label.Merge(c.set.Labels(), map[string]string{nebiusv1alpha1.LabelNodeConfigurator: "true"})
	out.Add(&appsv1.DaemonSet{
		ObjectMeta: c.meta(NodeConfiguratorDaemonSet(n.Name)),
		Spec: appsv1.DaemonSetSpec{
			Selector:             &metav1.LabelSelector{MatchLabels: c.set.Selector()},
			RevisionHistoryLimit: new(int32(1)),
			// A rebooter without rights ends soon after it has started. It does not count as available meanwhile.
			MinReadySeconds: 10,
			Template:        corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	})
	out.Problems = c.problems
	out.Notes = c.notes
	if len(c.replaced) > 0 {
		out.Notes = append(out.Notes, "images of Soperator are replaced by those of this operator: "+strings.Join(c.replaced, ", "))
	}
	return out
}

// configurator collects what a NodeConfigurator is composed of.
type configurator struct {
	findings
	object *nebiusv1alpha1.NodeConfigurator
	spec   *nebiusv1alpha1.NodeConfiguratorSpec
	images image.Set
	set    label.Set
	// makesAccount is true if the rebooter runs and no ServiceAccount is named.
	makesAccount bool
}

func (c *configurator) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.object.Namespace, Name: name, Labels: c.set.Labels()}
}

// custom is the block of the user's container, under either of its names, and its path; nil when it does not run.
func (c *configurator) custom() (*nebiusv1alpha1.CustomContainer, string) {
	switch old := c.spec.NodeConfigurator; { //nolint:staticcheck // deprecated, and in effect all the same
	case c.spec.CustomContainer != nil && c.spec.CustomContainer.Enabled:
		return c.spec.CustomContainer, "spec.customContainer"
	case old != nil && old.Enabled:
		return &nebiusv1alpha1.CustomContainer{
			Enabled: true, Image: old.Image, Env: old.Env, Resources: old.Resources, LivenessProbe: old.LivenessProbe, ReadinessProbe: old.ReadinessProbe,
			Affinity: old.Affinity, NodeSelector: old.NodeSelector, Tolerations: old.Tolerations, PriorityClassName: old.PriorityClassName,
			ServiceAccountName: old.ServiceAccountName, HostUsers: old.HostUsers,
		}, "spec.nodeConfigurator"
	}
	return nil, ""
}

func (c *configurator) pod() corev1.PodSpec {
	rebooter := &c.spec.Rebooter
	custom, path := c.custom()
	out := corev1.PodSpec{
		HostPID: rebooter.Enabled, HostNetwork: c.spec.HostNetwork == nil || *c.spec.HostNetwork, HostIPC: c.spec.HostIPC,
		EnableServiceLinks: new(false), InitContainers: c.inits(),
	}
	if out.HostNetwork {
		out.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if c.spec.ShareProcessNamespace {
		out.ShareProcessNamespace = new(true)
	}
	if rebooter.Enabled {
		out.Containers = append(out.Containers, c.rebooter())
	}
	if custom != nil {
		out.Containers = append(out.Containers, c.customContainer(custom, path))
	}
	switch {
	case len(out.Containers) == 0:
		c.fail("spec", "nothing is enabled: set enabled of rebooter or of customContainer")
	case len(out.Containers) == 2 && out.Containers[0].Name == out.Containers[1].Name:
		c.fail(path+".name", "is also the name of the rebooter's container")
	}
	c.place(&out, custom, path)
	c.namespaces(&out, path)
	return out
}

// namespaces refuses what the API server would refuse only in the pods, where few would look.
func (c *configurator) namespaces(pod *corev1.PodSpec, custom string) {
	if c.spec.Rebooter.Enabled && c.spec.ShareProcessNamespace {
		c.fail("spec.shareProcessNamespace", "must be false with the rebooter, which needs the processes of the host")
	}
	if pod.HostUsers == nil || *pod.HostUsers {
		return
	}
	path := cmp.Or(custom, "spec.rebooter") + ".hostUsers"
	switch {
	case c.spec.Rebooter.Enabled:
		c.fail("spec.rebooter.hostUsers", "must be true with the rebooter: root in a user namespace cannot reboot the machine")
	case pod.HostNetwork:
		c.fail(path, "false needs spec.hostNetwork false")
	case pod.HostIPC:
		c.fail(path, "false needs spec.hostIPC false")
	}
}

// place sets where the pods run and as whom. Two containers share a pod, so their blocks must not contradict each other.
func (c *configurator) place(pod *corev1.PodSpec, custom *nebiusv1alpha1.CustomContainer, path string) {
	r := nebiusv1alpha1.Rebooter{}
	if c.spec.Rebooter.Enabled {
		r = c.spec.Rebooter
	}
	if custom == nil {
		custom = &nebiusv1alpha1.CustomContainer{}
	}
	pod.Affinity = either(c, path+".affinity", affinityOf(c, "spec.rebooter.affinity", r.Affinity), affinityOf(c, path+".affinity", custom.Affinity))
	pod.NodeSelector = either(c, path+".nodeSelector", r.NodeSelector, custom.NodeSelector)
	pod.Tolerations = slices.Clone(either(c, path+".tolerations", r.Tolerations, custom.Tolerations))
	pod.PriorityClassName = either(c, path+".priorityClassName", r.PriorityClassName, custom.PriorityClassName)
	pod.ServiceAccountName = either(c, path+".serviceAccountName", r.ServiceAccountName, custom.ServiceAccountName)
	pod.HostUsers = either(c, path+".hostUsers", r.HostUsers, custom.HostUsers)
	if c.spec.Rebooter.Enabled {
		c.makesAccount = pod.ServiceAccountName == ""
		pod.ServiceAccountName = cmp.Or(pod.ServiceAccountName, RebooterAccount(c.object.Name))
		// The taint of a drained node must not end who has to take it away.
		taint := nebiusv1alpha1.RebooterTaint()
		own := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
		if !slices.Contains(pod.Tolerations, own) {
			pod.Tolerations = append(pod.Tolerations, own)
		}
	}
	pod.AutomountServiceAccountToken = new(pod.ServiceAccountName != "")
}

// either is the value that one of two blocks sets. Both may set the same.
func either[T any](c *configurator, path string, rebooter, custom T) T {
	switch {
	case isNothing(custom):
		return rebooter
	case !isNothing(rebooter) && !equality.Semantic.DeepEqual(rebooter, custom):
		c.fail(path, "differs from that of spec.rebooter, and both containers run in one pod: give it in one of the two")
	}
	return custom
}

func isNothing[T any](value T) bool {
	v := reflect.ValueOf(&value).Elem()
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

func affinityOf(c *configurator, path string, a *embedded.Affinity) *corev1.Affinity {
	out, err := a.Decode()
	c.failIf(path, err)
	return out
}

// rebooter is the container that drains and reboots. It asks systemd of the host to reboot, and restarts the kernel where there is none.
// Both take root in the namespaces of the host, and no profile of the runtime in between.
func (c *configurator) rebooter() corev1.Container {
	const path = "spec.rebooter"
	r := &c.spec.Rebooter
	out := corev1.Container{
		Name:            cmp.Or(r.Name, rebooterContainer),
		Image:           cmp.Or(c.image(r.Image.Reference(), path+".image"), c.images.Rebooter()),
		ImagePullPolicy: cmp.Or(r.Image.PullPolicy, corev1.PullIfNotPresent),
		Command:         r.Command,
		Env: append(c.rebooterEnv(r.Env, path+".env"),
			corev1.EnvVar{Name: "REBOOTER_EVICTION_METHOD", Value: cmp.Or(r.EvictionMethod, "evict")},
			corev1.EnvVar{Name: nebiusv1alpha1.EnvRebooterNodeName, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}}),
		Resources:     r.Resources,
		LivenessProbe: c.probe(r.LivenessProbe, path+".livenessProbe"), ReadinessProbe: c.probe(r.ReadinessProbe, path+".readinessProbe"),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			Privileged: new(true), RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), RunAsNonRoot: new(false), ReadOnlyRootFilesystem: new(true),
		},
	}
	if len(out.Command) == 0 {
		out.Command = []string{"/usr/bin/rebooter"}
	}
	health := "0" // a port of the host, if the pod has its network
	if out.LivenessProbe != nil || out.ReadinessProbe != nil {
		health = rebooterHealthPort
	}
	out.Args = []string{
		"--log-level=" + cmp.Or(r.LogLevel, "info"), "--log-format=" + cmp.Or(r.LogFormat, "json"),
		"--metrics-bind-address=0", "--health-probe-bind-address=" + health,
	}
	return out
}

// rebooterEnv are the variables of the user, without those that the operator sets itself.
func (c *configurator) rebooterEnv(vars []embedded.EnvVar, path string) []corev1.EnvVar {
	out := c.env(vars, path)
	for i, v := range out {
		if v.Name == nebiusv1alpha1.EnvRebooterNodeName || v.Name == "REBOOTER_EVICTION_METHOD" {
			c.fail(index(path, i)+".name", "%s is set by the operator", v.Name)
		}
	}
	return out
}

// customContainer is the container of the user. Without a command it does nothing, and keeps the pod with its init containers alive.
func (c *configurator) customContainer(u *nebiusv1alpha1.CustomContainer, path string) corev1.Container {
	out := corev1.Container{
		Name:            cmp.Or(u.Name, idleContainer),
		Image:           cmp.Or(u.Image.Reference(), c.images.Slurmd()),
		ImagePullPolicy: cmp.Or(u.Image.PullPolicy, corev1.PullIfNotPresent),
		Command:         u.Command,
		Env:             c.env(u.Env, path+".env"),
		Resources:       u.Resources,
		LivenessProbe:   c.probe(u.LivenessProbe, path+".livenessProbe"), ReadinessProbe: c.probe(u.ReadinessProbe, path+".readinessProbe"),
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: new(int64(65534)), RunAsGroup: new(int64(65534)), RunAsNonRoot: new(true),
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if len(out.Command) == 0 {
		out.Command = []string{"sh", "-c", idle}
	}
	return out
}

// inits are the containers that configure the node.
func (c *configurator) inits() []corev1.Container {
	if len(c.spec.InitContainers) > 0 {
		return c.initContainers(c.spec.InitContainers, "spec.initContainers")
	}
	return []corev1.Container{{
		Name: sysctlContainer, Image: c.images.Slurmd(), ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"sh", "-c", allowUserNamespaces},
		SecurityContext: &corev1.SecurityContext{
			Privileged: new(true), RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), RunAsNonRoot: new(false), ReadOnlyRootFilesystem: new(true),
		},
	}}
}
