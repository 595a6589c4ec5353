// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const (
	workerPath = "spec.slurmNodes.worker"
	// workerName is the name of the workers of slurmNodes.worker in Slurm: their nodes are worker-0 and so on.
	workerName = "worker"
	spoolDir   = "/var/spool/slurmd"
)

// labelWorker is a label of the pods of workers by which Soperator's users and tools select them.
const labelWorker = "slurm.nebius.ai/worker"

// workers is one kind of workers, from slurmNodes.worker or from a NodeSet.
type workers struct {
	// object is the name of the composed object, and name that of the workers in Slurm.
	object, name   string
	replicas       int32
	container      corev1.Container
	pod            corev1.PodSpec
	annotations    map[string]string
	disk           storage
	conf           conf.NodeConf
	confPath       string
	maxUnavailable *intstr.IntOrString
	maxPath        string
	retention      *slinkyv1beta1.PersistentVolumeClaimRetentionPolicy
	jail           *slinkyv1beta1.Jail
	// sshdConfig selects the sshd_config of workers with a jail; nil for the operator's.
	sshdConfig *corev1.ConfigMapKeySelector
	// sssd selects the sssd.conf of workers with a jail; nil for no SSSD.
	sssd        *corev1.SecretKeySelector
	powerSaving *slinkyv1beta1.NodeSetPowerSaving
	munge       *slinkyv1beta1.Munge
}

// composeWorkers composes the NodeSets of the cluster.
func (c *composer) composeWorkers() {
	sets := &c.out.Components.NodeSets
	if set := c.worker(); set != nil {
		*sets = append(*sets, set)
	}
	for i := range c.nodeSets {
		composed := nodeSet(c, &c.nodeSets[i], c.gres[c.nodeSets[i].Name])
		*sets = append(*sets, composed.Object)
		for _, image := range composed.Replaced {
			c.replaced = append(c.replaced, "NodeSet "+c.nodeSets[i].Name+" "+image)
		}
		if len(composed.Problems) > 0 {
			c.out.Held = append(c.out.Held, Held{Object: composed.Object, NodeSet: c.nodeSets[i].Name, Problems: composed.Problems})
		}
	}
}

// worker composes slurmNodes.worker, also with size 0: that is how it shrinks to nothing without losing a job.
func (c *composer) worker() *slinkyv1beta1.NodeSet {
	node := c.spec.SlurmNodes.Worker
	if node == nil {
		return nil
	}
	for i := range c.nodeSets {
		if c.nodeSets[i].Name != workerName {
			continue
		}
		if node.Size > 0 {
			c.fail(workerPath+".size", "must be 0: NodeSet %s has workers of the same names", workerName)
		}
		return nil
	}
	filtered := *node
	node = &filtered
	node.Slurmd.AppArmorProfile = c.confined(node.Slurmd.AppArmorProfile)
	c.dropFilter(node.Size == 0, &node.K8sNodeFilterName, workerPath)
	limits := node.Slurmd.SecurityLimitsConfig
	node.Slurmd.SecurityLimitsConfig = ""
	w := workers{
		object: c.cluster.WorkerNodeSetName(), name: workerName, replicas: c.unlessDownscaled(node.Size),
		container: c.container(node.Slurmd, workerPath+".slurmd", sameAsRequests),
		pod:       c.podSpec(node.SlurmNode, node.HostUsers, node.Slurmd, workerPath),
		confPath:  workerPath + ".slurmd.resources", annotations: node.WorkerAnnotations,
		maxUnavailable: node.MaxUnavailable, maxPath: workerPath + ".maxUnavailable",
	}
	w.munge = c.munge(node.Munge, workerPath+".munge", &w.pod)
	w.container.Env = append(w.container.Env, c.clusterType())
	if node.EnableGDRCopy {
		w.container.Env = append(w.container.Env, gdrCopy())
	}
	c.addFeatures(&w.container)
	w.addInstance()
	w.addExtra(&c.findings, node.SlurmNodeExtra, workerPath+".slurmNodeExtra", contractVariables(c.cluster.WorkerServiceName(), node.Slurmd.Resources)...)
	w.addGPUs(node.Slurmd.Resources)
	w.addRealMemory(&c.findings, node.Slurmd.Resources, workerPath+".slurmd.customEnv")
	at := workerPath + ".volumes"
	c.add(&w.disk, true, c.spool(node.Volumes.Spool, "worker-spool", spoolDir, at+".spool")...)
	c.add(&w.disk, true, c.clusterMounts(node.Volumes.CustomMounts, at+".customMounts")...)
	w.jail = c.jail(node.Volumes.Jail, at+".jail")
	c.addJailMounts(&w.disk, w.jail, true, c.clusterMounts(node.Volumes.JailSubMounts, at+".jailSubMounts")...)
	w.disk.addSharedMemory(node.Volumes.SharedMemorySize)
	w.disk.addMemory(w.jail, node.Slurmd.Resources.Memory())
	w.conf = withPort(w.conf, node.Slurmd.Port)
	w.limit(&c.findings, limits, workerPath+".slurmd.securityLimitsConfig")
	w.useSSHDConfig(&c.findings, node.SSHDConfigMapRefName, workerPath+".sshdConfigMapRefName")
	set := w.build(&c.findings, c.cluster)
	set.Labels = c.labels("worker")
	return set
}

// withPort lets slurmd listen on another port than the usual one. Each node has its own; SlurmdPort is one for all.
func withPort(node conf.NodeConf, port int32) conf.NodeConf {
	if port != 0 && port != slinkyv1beta1.SlurmdPort {
		node.Add("Port", strconv.Itoa(int(port)))
	}
	return node
}

// build makes the NodeSet.
func (w *workers) build(f *findings, cluster *nebiusv1.SlurmCluster) *slinkyv1beta1.NodeSet {
	text, err := w.conf.Text()
	f.failIf(w.confPath, err)
	f.checkMaxUnavailable(w.maxUnavailable, w.maxPath)
	f.note(w.jail != nil && gpus(w.container.Resources.Requests) > 0, string(nvidiaGPU)+
		": nothing mounts the driver's libraries of a worker into the jail, so that jobs see devices only; install the libraries there, of the driver's version")
	w.pod.Hostname = w.name + "-"
	volume, mount := loginUsers(cluster)
	w.pod.Volumes, w.container.VolumeMounts = append(w.disk.volumes, volume), append(w.disk.mounts, mount)
	ssh := w.addSSH(cluster)
	template := podTemplate(w.pod, w.annotations)
	template.Metadata.Labels = map[string]string{labelWorker: "true", LabelNodeSet: w.name}
	out := &slinkyv1beta1.NodeSet{
		Spec: slinkyv1beta1.NodeSetSpec{
			ControllerRef: slinkyv1beta1.ObjectReference{Name: cluster.ControllerName()},
			Replicas:      &w.replicas,
			Slurmd:        containerOverlay(w.container),
			SSH:           ssh,
			Jail:          w.jail,
			PowerSaving:   w.powerSaving,
			Munge:         w.munge,
			Template:      template,
			ExtraConf:     text,
			UpdateStrategy: slinkyv1beta1.NodeSetUpdateStrategy{
				Type: slinkyv1beta1.UpdateRolling, RollingUpdate: &slinkyv1beta1.RollingUpdate{MaxUnavailable: w.maxUnavailable},
			},
			PersistentVolumeClaimRetentionPolicy: w.retention,
			// Several workers on a Kubernetes node were never forbidden; their resources decide how many fit.
			OversubscribeNode: true,
		},
	}
	out.Namespace, out.Name = cluster.Namespace, w.object
	for i := range w.disk.claims {
		// So that the owner of the claim can be seen when all else of the cluster is gone.
		w.disk.claims[i].Labels = map[string]string{slinkyv1beta1.LabelCluster: cluster.ControllerName()}
		out.Spec.VolumeClaimTemplates = append(out.Spec.VolumeClaimTemplates,
			embedded.PersistentVolumeClaim{RawExtension: embedded.From(overlayFields(w.disk.claims[i]))})
	}
	return out
}

// loginUsers gives jobs the names of the users of the login pods. The ConfigMap need not exist: it comes with the
// first user, and no worker is replaced for that.
func loginUsers(cluster *nebiusv1.SlurmCluster) (corev1.Volume, corev1.VolumeMount) {
	const name = "login-users"
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: loginSet(cluster).UsersName()}, Optional: new(true),
	}}}, corev1.VolumeMount{Name: name, MountPath: usersDir, ReadOnly: true}
}

// checkMaxUnavailable refuses a value with which a NodeSet would never finish an update.
func (f *findings) checkMaxUnavailable(limit *intstr.IntOrString, path string) {
	if limit == nil || limit.Type == intstr.Int && limit.IntVal > 0 {
		return
	}
	percent, ok := strings.CutSuffix(limit.StrVal, "%")
	if n, err := strconv.Atoi(percent); limit.Type == intstr.String && ok && err == nil && n >= 1 && n <= 100 && strconv.Itoa(n) == percent {
		return
	}
	f.fail(path, "must be a number from 1, or a percentage from 1%% to 100%%")
}

// putOff puts the start of each worker off, by a random time of at most so many seconds.
func (w *workers) putOff(seconds int32) {
	if seconds <= 0 {
		return
	}
	w.container.Env = append(w.container.Env, corev1.EnvVar{Name: "WORKER_INIT_RANDOM_DELAY_SECONDS", Value: strconv.Itoa(int(seconds))})
	// The kubelet must not end a container that still waits.
	w.container.StartupProbe = &corev1.Probe{FailureThreshold: min(seconds, math.MaxInt32-slurmd.StartSeconds) + slurmd.StartSeconds}
}

// addGPUs configures in Slurm the GPUs that the pod requests from Kubernetes, unless the user has described them.
func (w *workers) addGPUs(list corev1.ResourceList) {
	if _, described := w.conf.Get("Gres"); described {
		return
	}
	if n := gpus(list); n > 0 {
		w.conf.Add("Gres", "gpu:"+strconv.FormatInt(n, 10))
	}
}

// realMemoryVariable has the memory of the node in bytes, for the scripts of Soperator's charts.
const realMemoryVariable = "SOPERATOR_NODE_REAL_MEMORY_BYTES"

// addRealMemory has the node register the memory of the container, as Soperator has it, unless the user has described it: scripts and checks
// compare what is free with what Slurm has for jobs (docs/contributors/predecessors/soperator-objects.md#keys-of-slurmconf). envPath is the
// field with variables of the user's.
func (w *workers) addRealMemory(f *findings, list corev1.ResourceList, envPath string) {
	if slices.ContainsFunc(w.container.Env, func(e corev1.EnvVar) bool { return e.Name == realMemoryVariable }) {
		f.fail(envPath, "must not have %s, which the operator sets", realMemoryVariable)
		return
	}
	described, ok := w.conf.Get("RealMemory")
	mebibytes, err := strconv.ParseInt(described, 10, 64)
	if !ok {
		if mebibytes, err = list.Memory().Value()>>20, nil; mebibytes > 0 {
			w.conf.Add("RealMemory", strconv.FormatInt(mebibytes, 10))
		}
	}
	if err == nil && mebibytes > 0 {
		w.container.Env = append(w.container.Env, corev1.EnvVar{Name: realMemoryVariable, Value: strconv.FormatInt(mebibytes<<20, 10)})
	}
}

// nvidiaGPU is the extended resource of NVIDIA's device plugin.
const nvidiaGPU corev1.ResourceName = "nvidia.com/gpu"

func gpus(list corev1.ResourceList) int64 {
	quantity := list[nvidiaGPU]
	return quantity.Value()
}

// WantsGPUs reports whether workers of a cluster, its own and those of its NodeSets, are meant to have GPUs: by what their pods request, or by
// what Slurm is told of their nodes.
func WantsGPUs(cluster *nebiusv1.SlurmCluster, nodeSets []nebiusv1alpha1.NodeSet) bool {
	if worker := cluster.Spec.SlurmNodes.Worker; worker != nil && gpus(worker.Slurmd.Resources) > 0 {
		return true
	}
	return slices.ContainsFunc(nodeSets, func(n nebiusv1alpha1.NodeSet) bool {
		spec := &n.Spec
		lines := strings.ToLower(strings.Join(append(slices.Clone(spec.NodeConfig.GresConfig), spec.NodeConfig.Static), " "))
		return spec.GPU.Enabled || gpus(spec.Slurmd.Resources) > 0 || strings.Contains(lines, "gpu") || strings.Contains(lines, "nvidia")
	})
}

// hasGPUs reports whether any workers are meant to have GPUs of NVIDIA.
func (c *composer) hasGPUs() bool {
	if worker := c.spec.SlurmNodes.Worker; worker != nil && gpus(worker.Slurmd.Resources) > 0 {
		return true
	}
	for i := range c.nodeSets {
		if spec := &c.nodeSets[i].Spec; spec.GPU.Enabled || gpus(spec.Slurmd.Resources) > 0 {
			return true
		}
	}
	return false
}

func gdrCopy() corev1.EnvVar { return corev1.EnvVar{Name: "NVIDIA_GDRCOPY", Value: "enabled"} }
