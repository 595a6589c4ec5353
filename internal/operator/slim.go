// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// slimPod is the form in which the cache keeps a pod. Of a worker, of which there are thousands, it keeps what the operator reads
// there; the rest, which is most of it, is the kubelet's business. Nobody writes a whole pod back.
func slimPod(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	p.ManagedFields = nil
	if p.Labels[slinkyv1beta1.LabelCluster] == "" {
		return p, nil
	}
	p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil })
	p.Spec.Tolerations, p.Spec.Affinity, p.Spec.SecurityContext, p.Spec.TopologySpreadConstraints = nil, nil, nil, nil
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeMounts, c.SecurityContext, c.Lifecycle = nil, nil, nil
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
		}
	}
	p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = nil, nil, nil
	return p, nil
}
