// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// DropEmpty gives the fields of enums that are "" their default, like the method of a SlurmCluster.
func (n *NodeSet) DropEmpty() {
	s := &n.Spec
	otherwise(&s.UpdateStrategy, UpdateStrategyRollingUpdate)
	otherwise(&s.Slurmd.CgroupVersion, "v2")
	otherwise(&s.Slurmd.Image.PullPolicy, corev1.PullIfNotPresent)
	if len(s.WorkerAnnotations) == 0 {
		s.WorkerAnnotations = nil
	}
	policy := &s.Slurmd.Volumes.PersistentVolumeClaimRetentionPolicy
	otherwise(&policy.WhenDeleted, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	otherwise(&policy.WhenScaled, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

func otherwise[T ~string](s *T, byDefault T) {
	if *s == "" {
		*s = byDefault
	}
}
