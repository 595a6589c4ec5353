// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

const (
	sConfigPath = "spec.sConfigController"
	// sConfigComponent is the component of the program that writes files of JailedConfigs into the jail, and its program.
	sConfigComponent = "sconfigcontroller"
	// sConfigContainer is its container, as Soperator has it: docs/contributors/predecessors/soperator-objects.md#jailedconfig.
	sConfigContainer = "sconfigctrl"
	// sConfigHealthPort is where the program answers probes.
	sConfigHealthPort = 8081
)

// WritesFiles reports whether a SlurmCluster has, at least at times, a program that writes the files of JailedConfigs.
func WritesFiles(in Input) bool {
	return hasSConfigController(&in.Cluster.Spec) && newComposer(in).jailVolume() != nil
}

func hasSConfigController(spec *nebiusv1.SlurmClusterSpec) bool {
	size := spec.SConfigController.Node.Size
	return size == nil || *size > 0
}

// SConfigControllerSelector are the labels of the pods that write the files of JailedConfigs.
func SConfigControllerSelector(cluster *nebiusv1.SlurmCluster) map[string]string {
	set := label.Set{Name: "slurmcluster", Instance: cluster.Name}
	return label.Merge(set.Selector(), map[string]string{label.Component: sConfigComponent})
}

// sConfigController composes the program that writes files of JailedConfigs into the jail; nil without a jail, or as long as it is not
// filled.
func (c *composer) sConfigController() *appsv1.Deployment {
	spec := c.spec.SConfigController
	volume := c.jailVolume()
	// The default chart names a filter that it does not make.
	c.dropFilter(true, &spec.Node.K8sNodeFilterName, sConfigPath+".node")
	if volume == nil {
		c.differs(sConfigPath, spec, defaultSConfigController())
		return nil
	}
	replicas := int32(1)
	if !hasSConfigController(c.spec) || c.spec.Maintenance.Downscaled() || c.out.Jail.Paused {
		replicas = 0
	}
	c.note(spec.Node.Size != nil && *spec.Node.Size > 1, sConfigPath+".node.size: only one pod runs, and it is created again if it is lost; there are no standby pods")
	template := c.sConfigPod(spec, *volume)
	out := &appsv1.Deployment{
		ObjectMeta: c.meta(c.cluster.SConfigControllerName(), sConfigComponent),
		Spec: appsv1.DeploymentSpec{
			Replicas:             &replicas,
			RevisionHistoryLimit: new(int32(0)),
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, // one program writes at a time
			Selector:             &metav1.LabelSelector{MatchLabels: SConfigControllerSelector(c.cluster)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: label.Merge(c.labels(sConfigComponent), map[string]string{slinkyv1beta1.LabelSlurmrestdClient: "true"})},
				Spec:       template,
			},
		},
	}
	if c.out.Jail.Awaited {
		return nil // its mistakes are reported all the same
	}
	return out
}

// jailedFiles composes what has the files beside slurm.conf written into the jail, where checks and users of Soperator look for them. Slurm's
// commands in the jail read others, which slurmctld sends. It is in no group with JailedConfigs of users, whose mistakes would hold it up.
func (c *composer) jailedFiles(files *corev1.ConfigMap) *nebiusv1alpha1.JailedConfig {
	out := &nebiusv1alpha1.JailedConfig{
		ObjectMeta: c.meta(files.Name, sConfigComponent),
		Spec:       nebiusv1alpha1.JailedConfigSpec{ConfigMap: nebiusv1alpha1.ConfigMapReference{Name: files.Name}},
	}
	for _, name := range slices.Sorted(maps.Keys(files.Data)) {
		out.Spec.Items = append(out.Spec.Items, nebiusv1alpha1.JailedConfigItem{Key: name, Path: "/etc/slurm/" + name})
	}
	return out
}

// sConfigPod is the pod that writes. It runs as root, the owner of the directories of a jail, without root's capabilities.
func (c *composer) sConfigPod(spec nebiusv1.SConfigController, volume corev1.VolumeSource) corev1.PodSpec {
	hostUsers := spec.Node.HostUsers
	if hostUsers == nil {
		hostUsers = spec.HostUsers //nolint:staticcheck // deprecated, and in effect all the same
	}
	out := c.podSpec(spec.Node.SlurmNode, hostUsers, spec.Container, sConfigPath+".node")
	out.ServiceAccountName = cmp.Or(spec.ServiceAccountName, c.sConfigAccount())
	out.EnableServiceLinks = new(false)
	uid, gid := new(int64(0)), new(int64(0))
	if spec.RunAsUID != nil {
		uid = spec.RunAsUID
	}
	if spec.RunAsGID != nil {
		gid = spec.RunAsGID
	}
	out.SecurityContext = &corev1.PodSecurityContext{
		RunAsUser: uid, RunAsGroup: gid, RunAsNonRoot: new(*uid != 0), // no fsGroup: the kubelet would change the groups of the whole jail
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	out.Volumes = []corev1.Volume{{Name: pod.JailVolume, VolumeSource: volume}}
	out.Containers = []corev1.Container{c.sConfigContainer(spec)}
	if *uid != 0 || *gid != 0 {
		out.InitContainers = append(out.InitContainers, configDirectoryGiver(out.Containers[0], *uid, *gid))
	}
	return out
}

// configDirectoryGiver makes the writer the owner of /etc/slurm in the jail: a jail that we fill belongs to root. It is root with the
// one capability that this takes.
func configDirectoryGiver(writer corev1.Container, uid, gid int64) corev1.Container {
	return corev1.Container{
		Name: "config-directory", Image: writer.Image, ImagePullPolicy: writer.ImagePullPolicy, Command: writer.Command,
		Args: []string{"--jail-path=" + slinkyv1beta1.JailDir, fmt.Sprintf("--give-config-directory=%d:%d", uid, gid)},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), RunAsNonRoot: new(false),
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"CHOWN"}},
		},
		Resources: writer.Resources, VolumeMounts: writer.VolumeMounts,
	}
}

func (c *composer) sConfigContainer(spec nebiusv1.SConfigController) corev1.Container {
	const at = sConfigPath + ".container"
	c.ignore(spec.Container.Port != 0, at+".port")
	out := c.container(spec.Container, at, withoutCPU)
	out.Name, out.Image = sConfigContainer, cmp.Or(out.Image, c.images.SConfigController())
	if len(out.Command) == 0 {
		out.Command = []string{"/usr/bin/sconfigcontroller"}
	}
	args := []string{
		"--cluster-namespace=" + c.cluster.Namespace, "--cluster-name=" + c.cluster.Name, "--jail-path=" + slinkyv1beta1.JailDir,
		"--slurmapiserver=" + c.out.Components.RestAPI.URL(),
		"--metrics-bind-address=0", // checking who may read them takes rights on the whole Kubernetes cluster
	}
	if d := spec.ReconfigurePollInterval.Duration; d != 0 {
		args = append(args, "--reconfigure-poll-interval="+d.String())
	}
	if d := spec.ReconfigureWaitTimeout.Duration; d != 0 {
		args = append(args, "--reconfigure-wait-timeout="+d.String())
	}
	out.Args = append(args, out.Args...)
	restrict(&out)
	out.Ports = []corev1.ContainerPort{{Name: "health", ContainerPort: sConfigHealthPort, Protocol: corev1.ProtocolTCP}}
	if out.LivenessProbe == nil {
		out.LivenessProbe = &corev1.Probe{ProbeHandler: onHealthPort("/healthz"), InitialDelaySeconds: 10, PeriodSeconds: 20, TimeoutSeconds: pod.BusySeconds}
	}
	if out.ReadinessProbe == nil {
		out.ReadinessProbe = &corev1.Probe{ProbeHandler: onHealthPort("/readyz"), PeriodSeconds: 5, TimeoutSeconds: pod.BusySeconds}
	}
	out.VolumeMounts = []corev1.VolumeMount{{Name: pod.JailVolume, MountPath: slinkyv1beta1.JailDir}}
	return out
}

func onHealthPort(at string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: at, Port: intstr.FromString("health")}}
}

// sConfigAccount is the name of the ServiceAccount that is made where the spec names none.
func (c *composer) sConfigAccount() string { return c.cluster.SConfigControllerName() + "-sa" }

// sConfigRights let the program read what it writes into the jail, and write its progress. All of them are rights of the operator, too, or
// the API server would not let it grant them.
func (c *composer) sConfigRights(jwtSecret string) {
	// Soperator's chart makes a Role and a RoleBinding of the name of the Deployment.
	name, account := c.cluster.SConfigControllerName()+"-jailedconfigs", c.spec.SConfigController.ServiceAccountName
	if account == "" {
		account = c.sConfigAccount()
		c.out.Add(&corev1.ServiceAccount{ObjectMeta: c.meta(account, sConfigComponent)})
	}
	c.out.Add(
		&rbacv1.Role{ObjectMeta: c.meta(name, sConfigComponent), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{jwtSecret}, Verbs: []string{"get"}},
			{APIGroups: []string{"slurm.nebius.ai"}, Resources: []string{"jailedconfigs"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"slurm.nebius.ai"}, Resources: []string{"jailedconfigs/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: c.meta(name, sConfigComponent),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: c.cluster.Namespace}},
		},
	)
}
