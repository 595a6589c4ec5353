// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// preStop marks the node DOWN when its pod stops, so that slurmctld does not wait for SlurmdTimeout. An administrator's reason on the
// node stays, or the drain would look like ours afterwards. Without a whole answer of slurmctld the reason is not known, and nothing is
// changed. The same holds when slurmctld has another address for the node than this pod has: a pod whose Kubernetes node was lost and
// comes back has been replaced elsewhere, and the jobs there are none of its business. The end of the pod is not held up.
const preStop = `node=$(timeout 5 scontrol show node "$name") || exit 0
address=$name
case $node in *NodeAddr=*) address=${node#*NodeAddr=} address=${address%%[[:space:]]*} ;; esac
case " $name $(hostname -I) " in *" $address "*) ;; *) exit 0 ;; esac
case $node in
*Reason=slurm-operator:*) ;;
*Reason=* | *+DRAIN*) exit 0 ;;
NodeName=*State=*) ;;
*) exit 0 ;;
esac
timeout 5 scontrol update nodename="$name" state=down reason="slurm-operator: Pod is terminating" || true
`

// preStopName is the beginning of both: the name of the node.
const preStopName = `name=${POD_NODE_NAME:-$(hostname)}
`

// preStopOfSaved comes before preStop where Slurm powers workers up and down. The node of a worker that ends because it is powered
// down, or that Slurm already wants back, stays as it is: Slurm powers up no node that is DOWN.
const preStopOfSaved = `case $(timeout 5 scontrol show node "$name") in
*+POWERED_DOWN* | *+POWERING_*) exit 0 ;;
esac
`

func podSpec(in Input) (corev1.PodSpec, error) {
	n := in.NodeSet
	slurmd, slurmdErr := slurmd(in)
	logfile, logfileErr := overlay.Container(pod.Logfile(slurmd.Image, slinkyv1beta1.NameSlurmd), n.Spec.Logfile, "spec.logfile")
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		DNSConfig:                    &corev1.PodDNSConfig{Searches: []string{in.Controller.WorkerDomain(in.ClusterDomain)}},
		InitContainers:               []corev1.Container{logfile},
		Containers:                   []corev1.Container{slurmd},
		Tolerations:                  tolerations(),
		Volumes: []corev1.Volume{
			pod.Projected(pod.EtcVolume, 0o600, pod.SlurmKey(*in.Controller.AuthSlurmRef())...),
			pod.LogFileVolume(),
		},
	}
	if !n.Spec.OversubscribeNode {
		spec.Affinity = onePerNode()
	}
	addSshd(in, &spec)
	mungeErr := pod.AddMunge(&spec, slinkyv1beta1.NameSlurmd, n.Spec.Munge, in.Images.Munge())
	return spec, errors.Join(slurmdErr, logfileErr, mungeErr)
}

// tolerations are the taints of Kubernetes nodes for which no worker is deleted. A kubelet that does not
// answer does not mean that slurmd has ended. Jobs go on, and the worker cannot be replaced before it is known to be gone. The
// default would be to delete it after five minutes, and its jobs with it when the kubelet comes back.
func tolerations() []corev1.Toleration {
	out := []corev1.Toleration{{Key: slinkyv1beta1.TaintWorker, Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoExecute}}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	return out
}

// onePerNode keeps two workers from sharing a Kubernetes node: each would believe that it has the whole machine.
func onePerNode() *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: label.Name, Operator: metav1.LabelSelectorOpIn, Values: []string{slinkyv1beta1.NameSlurmd},
			}}},
		}},
	}}
}

func slurmd(in Input) (corev1.Container, error) {
	n := in.NodeSet
	list, confErr := registration(n)
	args, stop := []string{"-Z"}, preStopName+preStop
	if n.SavesPower() {
		// Slurm waits for a machine that has booted since it was powered up, and a pod's machine has not.
		args, stop = append(args, "-b"), preStopName+preStopOfSaved+preStop
	}
	c, err := overlay.Container(corev1.Container{
		Name:  slinkyv1beta1.NameSlurmd,
		Image: in.Images.Slurmd(),
		// The quotes are part of the argument: Slinky's images let a shell read the joined arguments, ours strip them.
		Args:  append(args, "--conf-server", in.Controller.Endpoint(), "--conf", "'"+list+"'"),
		Env:   topologyEnv(),
		Ports: []corev1.ContainerPort{{Name: slinkyv1beta1.NameSlurmd, ContainerPort: port(n), Protocol: corev1.ProtocolTCP}},
		// Jobs get cgroups, namespaces and devices from slurmd, which needs the right to make them.
		SecurityContext: &corev1.SecurityContext{
			Privileged:   new(true),
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"}},
		},
		// Before slurmd starts, the image waits for slurmctld, which may wait for slurmdbd and its database.
		StartupProbe:   &corev1.Probe{ProbeHandler: get("/livez"), TimeoutSeconds: pod.BusySeconds, FailureThreshold: StartSeconds, PeriodSeconds: 1},
		ReadinessProbe: &corev1.Probe{ProbeHandler: get("/readyz"), TimeoutSeconds: pod.BusySeconds, PeriodSeconds: 2},
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", stop}},
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: pod.EtcVolume, MountPath: pod.EtcSlurm, ReadOnly: true},
			{Name: pod.LogVolume, MountPath: pod.LogDir},
		},
	}, n.Spec.Slurmd, "spec.slurmd")
	return c, errors.Join(confErr, err)
}

// StartSeconds is the time in which slurmd has to have started.
const StartSeconds = 600

// completeLiveness adds what a user's liveness probe of slurmd leaves out. By default there is no such probe: a kubelet would end the
// container, and all jobs in it, when slurmd hangs. The image restarts a slurmd that hangs, and its jobs go on.
func completeLiveness(spec *corev1.PodSpec) {
	c := slurmdOf(spec)
	if c == nil || c.LivenessProbe == nil {
		return
	}
	probe := c.LivenessProbe
	if probe.ProbeHandler == (corev1.ProbeHandler{}) {
		probe.ProbeHandler = get("/livez")
	}
	probe.TimeoutSeconds = cmp.Or(probe.TimeoutSeconds, pod.BusySeconds)
	probe.FailureThreshold = cmp.Or(probe.FailureThreshold, 6)
	probe.PeriodSeconds = cmp.Or(probe.PeriodSeconds, 10)
}

// port is the one that slurmd listens on: slurmd(8) prefers its node's Port to SlurmdPort of slurm.conf.
func port(n *slinkyv1beta1.NodeSet) int32 {
	node, _ := conf.ParseNodeConf(n.Spec.ExtraConf) // nodeConf reports mistakes
	text, _ := node.Get("Port")
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return slinkyv1beta1.SlurmdPort
	}
	return int32(number)
}

// get asks slurmd's own health endpoints, which exist since Slurm 25.11.
func get(path string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(slinkyv1beta1.NameSlurmd)}}
}

// ownedKeys are those by which the operator finds the node of a pod again.
var ownedKeys = conf.Owned{"NodeName", "NodeHostname"} //nolint:gochecknoglobals // a constant list

// topologyVariable is the variable of the image that holds the place of the worker in the network.
const topologyVariable = "SLINKY_TOPOLOGY"

// registration is nodeConf as a text, and the place of the node in the network, so that no job starts before Slurm has it.
// The value is read when slurmd starts: the quotes end those around the whole argument, so that a shell takes in the variable.
func registration(n *slinkyv1beta1.NodeSet) (string, error) {
	said, err := nodeConf(n)
	list, textErr := said.Text()
	if textErr != nil {
		err = errors.Join(err, problem.Errorf("spec.extraConf", slinkyv1beta1.ReasonInvalidSpec, "%v", textErr))
	}
	if NeedsChecks(n) {
		for _, key := range []string{"State", "Reason"} {
			if _, given := said.Get(key); given {
				err = errors.Join(err, problem.Errorf("spec.extraConf", slinkyv1beta1.ReasonInvalidSpec, "%s cannot be used with spec.requiredChecks, for which the node registers drained", key))
			}
		}
		list += drainedUntilChecked
	}
	if _, given := said.Get("Topology"); !given && err == nil {
		list += ` Topology='"$` + topologyVariable + `"'`
	}
	return list, err
}

// drainedUntilChecked has slurmd make a record that drains. Slurm respects it only for a node that it does not have.
const drainedUntilChecked = ` State=DRAIN Reason="` + node.ChecksReason + `"`

// NeedsChecks reports whether the workers of a NodeSet take jobs only once checks have passed. Where Slurm powers workers up and down,
// it assigns jobs to a node before its slurmd registers.
func NeedsChecks(n *slinkyv1beta1.NodeSet) bool {
	return len(n.Spec.RequiredChecks) > 0 && !n.SavesPower()
}

// nodeConf is what the node registers with: the feature that puts it into its NodeSet, and the user's parameters.
func nodeConf(n *slinkyv1beta1.NodeSet) (conf.NodeConf, error) {
	var errs []error
	var own conf.NodeConf
	if err := hostlist.CheckName(n.SlurmName()); err != nil {
		errs = append(errs, problem.Errorf("spec.template.spec.hostname", slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	} else {
		own.Add("Features", n.SlurmName())
	}
	user, mistakes := conf.ParseNodeConf(n.Spec.ExtraConf)
	merged, refused := own.Merge(user, ownedKeys)
	for _, m := range append(mistakes, refused...) {
		errs = append(errs, problem.Errorf("spec.extraConf", slinkyv1beta1.ReasonInvalidSpec, "%s", m.Error()))
	}
	return merged, errors.Join(errs...)
}

// topologyEnv is the place of the worker's Kubernetes node in the network, by the names that the images of releases 1.0 and 1.3 read.
// Its value is the annotation of the pod when the container starts.
func topologyEnv() []corev1.EnvVar {
	const path = "metadata.annotations['" + slinkyv1beta1.AnnotationTopologySpec + "']"
	return []corev1.EnvVar{pod.FieldEnv("POD_TOPOLOGY", path), pod.FieldEnv(topologyVariable, path)}
}

// limit sets variables with what the pod may use, so that slurmd registers no more: whole CPUs, rounded up, and MiB. Both the
// limits of the container and those of the pod hold.
func limit(spec *corev1.PodSpec) {
	c := slurmdOf(spec)
	if c == nil {
		return
	}
	var ofPod corev1.ResourceList
	if spec.Resources != nil {
		ofPod = spec.Resources.Limits
	}
	tell := func(name string, kind corev1.ResourceName, amount func(resource.Quantity) int64) {
		if value := lesser(c.Resources.Limits[kind], ofPod[kind]); !value.IsZero() {
			pod.AddEnv(c, corev1.EnvVar{Name: name, Value: strconv.FormatInt(amount(value), 10)})
		}
	}
	tell("POD_CPUS", corev1.ResourceCPU, func(q resource.Quantity) int64 { return q.Value() })
	tell("POD_MEMORY", corev1.ResourceMemory, func(q resource.Quantity) int64 { return q.Value() >> 20 })
}

// lesser is the smaller of two limits; a zero is no limit.
func lesser(a, b resource.Quantity) resource.Quantity {
	if a.IsZero() || !b.IsZero() && b.Cmp(a) < 0 {
		return b
	}
	return a
}

// slurmdOf is the container of slurmd; nil without one.
func slurmdOf(spec *corev1.PodSpec) *corev1.Container {
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == slinkyv1beta1.NameSlurmd })
	if i < 0 {
		return nil
	}
	return &spec.Containers[i]
}

// sharedMemory is the volume at shmDir, by which processes of a job exchange data.
const (
	sharedMemory = "dev-shm"
	shmDir       = "/dev/shm"
)

// addSharedMemory gives jobs as much shared memory as the pod may have, where the user mounts nothing there. A container runtime gives
// 64 MiB; collective libraries and data loaders need many times that.
func addSharedMemory(spec *corev1.PodSpec) {
	c := slurmdOf(spec)
	if c == nil || spec.HostIPC || mounts(c, func(path string) bool { return path == shmDir }) {
		return
	}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: sharedMemory, MountPath: shmDir})
	spec.Volumes = append(spec.Volumes, pod.EmptyDir(sharedMemory, true))
}

// mounts reports whether the container has a mount for whose path one returns true.
func mounts(c *corev1.Container, one func(path string) bool) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return one(filepath.Clean(m.MountPath)) })
}
