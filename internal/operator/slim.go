// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// slimPod returns the form in which the cache keeps a pod. Of a worker, of which there are thousands, it keeps what the operator reads
// there; the rest, which is most of it, is for the kubelet. No whole pod is written back.
func slimPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	p.ManagedFields = nil
	if p.Labels[label.Name] == nebiusv1alpha1.NameNodeConfigurator {
		return slimRebooter(p), nil
	}
	if p.Labels[slinkyv1beta1.LabelCluster] == "" {
		return p, nil
	}
	host := ""
	if health.StorageLimit(&p.Spec) > 0 {
		host = p.Status.HostIP // where its kubelet is asked
	}
	p.Spec = corev1.PodSpec{
		NodeName: p.Spec.NodeName, Hostname: p.Spec.Hostname, HostNetwork: p.Spec.HostNetwork,
		Containers: append(onlySlurmd(p.Spec.Containers), limited(p.Spec.Containers)...), InitContainers: limited(p.Spec.InitContainers),
		Volumes: slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil }),
	}
	if len(p.Spec.Volumes) == 0 {
		p.Spec.Volumes = nil // with room for all
	}
	p.Status = corev1.PodStatus{
		Phase: p.Status.Phase, Conditions: p.Status.Conditions, PodIP: p.Status.PodIP, HostIP: host, ContainerStatuses: lastWords(p.Status.ContainerStatuses),
	}
	return p, nil
}

// slimRebooter keeps of a pod of a NodeConfigurator where it runs, whether it is ready, and by which variables a rebooter is known.
func slimRebooter(p *corev1.Pod) *corev1.Pod {
	containers := make([]corev1.Container, len(p.Spec.Containers))
	for i, c := range p.Spec.Containers {
		containers[i] = corev1.Container{Name: c.Name, Env: slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return e.Name != nebiusv1alpha1.EnvRebooterNodeName })}
	}
	p.Spec = corev1.PodSpec{NodeName: p.Spec.NodeName, Containers: containers}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase, Conditions: p.Status.Conditions}
	return p
}

// lastWords returns the state of slurmd's container where it ended with a message and is not ready since.
func lastWords(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	words := reconcile.Ended(all, slinkyv1beta1.NameSlurmd)
	if words == "" {
		return nil
	}
	return []corev1.ContainerStatus{{
		Name: slinkyv1beta1.NameSlurmd, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: words}},
	}}
}

// onlySlurmd returns the container in which slurmd runs, with what it registers with.
func onlySlurmd(all []corev1.Container) []corev1.Container {
	for _, c := range all {
		if c.Name == slinkyv1beta1.NameSlurmd {
			plain := slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil })
			return []corev1.Container{{Name: c.Name, Args: c.Args, Env: slices.Clone(plain), Resources: storageLimit(&c)}}
		}
	}
	return nil
}

// limited returns the other containers with a limit of ephemeral storage, with nothing but that.
func limited(all []corev1.Container) (out []corev1.Container) {
	for i := range all {
		if limits := storageLimit(&all[i]); limits.Limits != nil && all[i].Name != slinkyv1beta1.NameSlurmd {
			out = append(out, corev1.Container{Name: all[i].Name, Resources: limits})
		}
	}
	return out
}

// storageLimit returns the limit of ephemeral storage of a container.
func storageLimit(c *corev1.Container) (out corev1.ResourceRequirements) {
	if limit, is := c.Resources.Limits[corev1.ResourceEphemeralStorage]; is {
		out.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: limit}
	}
	return out
}

// slimNode returns the form in which the cache keeps a Kubernetes node. Every kubelet lists its images and volumes there, and what the
// machine has; the UUID of its firmware distinguishes one machine from another.
func slimNode(o any) (any, error) {
	if n, ok := o.(*corev1.Node); ok {
		n.ManagedFields, n.Status = nil, corev1.NodeStatus{
			Conditions: n.Status.Conditions, NodeInfo: corev1.NodeSystemInfo{SystemUUID: n.Status.NodeInfo.SystemUUID},
		}
	}
	return o, nil
}
