// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const (
	workerPath = "spec.slurmNodes.worker"
	// workerName is the name of the workers of slurmNodes.worker in Slurm: their nodes are worker-0 and so on.
	workerName = "worker"
	spoolDir   = "/var/spool/slurmd"
)

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
}

// composeWorkers composes the NodeSets of the cluster.
func (c *composer) composeWorkers() {
	sets := &c.out.Components.NodeSets
	if set := c.worker(); set != nil {
		*sets = append(*sets, set)
	}
	for i := range c.nodeSets {
		composed := nodeSet(c.cluster, &c.nodeSets[i], c.sources, c.gres[c.nodeSets[i].Name])
		*sets = append(*sets, composed.Object)
		if len(composed.Problems) > 0 {
			c.out.Held = append(c.out.Held, Held{Object: composed.Object, NodeSet: c.nodeSets[i].Name, Problems: composed.Problems})
		}
	}
}

// worker composes slurmNodes.worker. With size 0 it is there, too: that is how it shrinks to nothing without losing a job.
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
	c.dropFilter(node.Size == 0, &node.K8sNodeFilterName, workerPath)
	w := workers{
		object: c.cluster.WorkerNodeSetName(), name: workerName, replicas: c.unlessDownscaled(node.Size),
		container: c.container(node.Slurmd, workerPath+".slurmd", sameAsRequests),
		pod:       c.podSpec(node.SlurmNode, node.HostUsers, node.Slurmd, workerPath),
		confPath:  workerPath + ".slurmd.resources", annotations: node.WorkerAnnotations,
		maxUnavailable: node.MaxUnavailable, maxPath: workerPath + ".maxUnavailable",
	}
	w.container.Env = append(w.container.Env, c.clusterType())
	if node.EnableGDRCopy {
		w.container.Env = append(w.container.Env, gdrCopy())
	}
	if node.SlurmNodeExtra != "" {
		w.container.Args = append(w.container.Args, "--extra", node.SlurmNodeExtra)
	}
	w.addGPUs(node.Slurmd.Resources)
	at := workerPath + ".volumes"
	c.add(&w.disk, true, c.spool(node.Volumes.Spool, "worker-spool", spoolDir, at+".spool")...)
	c.add(&w.disk, true, c.clusterMounts(node.Volumes.CustomMounts, at+".customMounts")...)
	w.disk.addSharedMemory(node.Volumes.SharedMemorySize)
	c.ignore(node.Slurmd.Port != 0 && node.Slurmd.Port != slinkyv1beta1.SlurmdPort, workerPath+".slurmd.port")
	set := w.build(&c.findings, c.cluster)
	set.Labels = c.labels("worker")
	return set
}

// build makes the NodeSet.
func (w *workers) build(f *findings, cluster *nebiusv1.SlurmCluster) *slinkyv1beta1.NodeSet {
	text, err := w.conf.Text()
	f.failIf(w.confPath, err)
	f.checkMaxUnavailable(w.maxUnavailable, w.maxPath)
	w.pod.Hostname = w.name + "-"
	volume, mount := loginUsers(cluster)
	w.pod.Volumes, w.container.VolumeMounts = append(w.disk.volumes, volume), append(w.disk.mounts, mount)
	out := &slinkyv1beta1.NodeSet{
		Spec: slinkyv1beta1.NodeSetSpec{
			ControllerRef: slinkyv1beta1.ObjectReference{Name: cluster.ControllerName()},
			Replicas:      &w.replicas,
			Slurmd:        containerOverlay(w.container),
			Template:      podTemplate(w.pod, w.annotations),
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
		// So that whose claim it is can be seen when all else of the cluster is gone.
		w.disk.claims[i].Labels = map[string]string{slinkyv1beta1.LabelCluster: cluster.ControllerName()}
		out.Spec.VolumeClaimTemplates = append(out.Spec.VolumeClaimTemplates,
			embedded.PersistentVolumeClaim{RawExtension: embedded.From(overlayFields(w.disk.claims[i]))})
	}
	return out
}

// loginUsers gives jobs the names of the users that the login pods know. The ConfigMap need not exist: it comes with the
// first user, and no worker is replaced for that.
func loginUsers(cluster *nebiusv1.SlurmCluster) (corev1.Volume, corev1.VolumeMount) {
	const name = "login-users"
	login := slinkyv1beta1.LoginSet{ObjectMeta: metav1.ObjectMeta{Name: cluster.LoginSetName()}}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: login.UsersName()}, Optional: new(true),
	}}}, corev1.VolumeMount{Name: name, MountPath: "/var/lib/extrausers", ReadOnly: true}
}

// checkMaxUnavailable refuses what a NodeSet does not take: it would never finish an update.
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

// addGPUs makes the GPUs that the pod asks Kubernetes for known to Slurm, unless the user has described them.
func (w *workers) addGPUs(list corev1.ResourceList) {
	if _, described := w.conf.Get("Gres"); described {
		return
	}
	if n := gpus(list); n > 0 {
		w.conf.Add("Gres", "gpu:"+strconv.FormatInt(n, 10))
	}
}

// nvidiaGPU is the extended resource of NVIDIA's device plugin.
const nvidiaGPU corev1.ResourceName = "nvidia.com/gpu"

func gpus(list corev1.ResourceList) int64 {
	quantity := list[nvidiaGPU]
	return quantity.Value()
}

// hasGPUs says whether any workers are meant to have GPUs of NVIDIA.
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
