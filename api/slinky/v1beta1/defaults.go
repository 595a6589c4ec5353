// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The API server fills in most defaults. The methods below give the value of a field also for objects that were built in
// Go or stored before the field had its default, and the defaults that depend on other fields.

// Persistent reports whether slurmctld saves its state on a PersistentVolumeClaim.
func (c *Controller) Persistent() bool {
	return c.Spec.Persistence == nil || c.Spec.Persistence.Enabled == nil || *c.Spec.Persistence.Enabled
}

// StateClaim returns the claim that the operator makes for slurmctld's state: what the spec has, and 4Gi with access
// mode ReadWriteOnce where it has nothing. It is nil when the state is not persistent or an existing claim is used.
func (c *Controller) StateClaim() *corev1.PersistentVolumeClaimSpec {
	claim := &corev1.PersistentVolumeClaimSpec{}
	if c.Spec.Persistence != nil {
		claim = claimWithoutEmpty(&c.Spec.Persistence.PersistentVolumeClaimSpec)
	}
	if !c.Persistent() || c.ExistingClaim() != "" {
		return nil
	}
	if len(claim.AccessModes) == 0 {
		claim.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if _, ok := claim.Resources.Requests[corev1.ResourceStorage]; !ok {
		if claim.Resources.Requests == nil {
			claim.Resources.Requests = corev1.ResourceList{}
		}
		claim.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("4Gi")
	}
	return claim
}

// ExistingClaim returns the name of the user's claim for slurmctld's state, or nothing.
func (c *Controller) ExistingClaim() string {
	if c.Spec.Persistence == nil || !c.Persistent() {
		return ""
	}
	return c.Spec.Persistence.ExistingClaim
}

// Replicas returns the number of slurmctld pods: none when slurmctld is external, else one and the backups.
func (c *Controller) Replicas() int32 {
	switch {
	case c.Spec.External:
		return 0
	case c.Spec.HA == nil || !c.Spec.HA.Enabled:
		return 1
	default:
		return 1 + max(valueOr(c.Spec.HA.Backups, 1), 1)
	}
}

// Suspended reports whether slurmctld is to be stopped. One that runs elsewhere cannot be.
func (c *Controller) Suspended() bool { return c.Spec.Suspend && !c.Spec.External }

// Suspended reports whether slurmdbd is to be stopped. One that runs elsewhere cannot be.
func (a *Accounting) Suspended() bool { return a.Spec.Suspend && !a.Spec.External }

// Replicas returns the number of slurmrestd pods.
func (r *RestApi) Replicas() int32 { return valueOr(r.Spec.Replicas, 1) }

// Guarded reports whether a NetworkPolicy restricts who may connect to slurmrestd.
func (r *RestApi) Guarded() bool { return valueOr(r.Spec.NetworkPolicy.Enabled, true) }

// Replicas returns the number of login pods.
func (l *LoginSet) Replicas() int32 { return valueOr(l.Spec.Replicas, 1) }

// Workload returns the kind of object that runs the login pods.
func (l *LoginSet) Workload() LoginWorkload {
	return nonEmptyOr(l.Spec.Workload, LoginWorkloadDeployment)
}

// Replicas returns the number of workers in scaling mode StatefulSet.
func (n *NodeSet) Replicas() int32 { return valueOr(n.Spec.Replicas, 1) }

// ScalingMode returns how many workers there are.
func (n *NodeSet) ScalingMode() ScalingMode {
	return nonEmptyOr(n.Spec.ScalingMode, ScalingModeStatefulSet)
}

// SavesPower reports whether Slurm powers the workers up and down.
func (n *NodeSet) SavesPower() bool {
	return n.Spec.PowerSaving != nil && n.ScalingMode() == ScalingModeStatefulSet
}

// InitialWorkers returns how many workers run before Slurm knows them, where it powers them up and down.
func (n *NodeSet) InitialWorkers() int32 {
	if n.Spec.PowerSaving == nil {
		return 0
	}
	return valueOr(n.Spec.PowerSaving.Initial, 1)
}

// DisruptionProtection reports whether workers are kept from being evicted.
func (n *NodeSet) DisruptionProtection() bool {
	return valueOr(n.Spec.WorkloadDisruptionProtection, true)
}

// UpdateType returns how workers are replaced when their template changes.
func (n *NodeSet) UpdateType() UpdateStrategyType {
	return nonEmptyOr(n.Spec.UpdateStrategy.Type, UpdateRolling)
}

// MaxUnavailable returns how many workers may be unavailable during a rolling update.
func (n *NodeSet) MaxUnavailable() intstr.IntOrString {
	if rolling := n.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		return *rolling.MaxUnavailable
	}
	return intstr.FromString("25%")
}

// RevisionHistoryLimit returns the number of old revisions that are kept.
func (n *NodeSet) RevisionHistoryLimit() int { return int(valueOr(n.Spec.RevisionHistoryLimit, 0)) }

// ClaimRetention returns what becomes of the workers' claims when the NodeSet is deleted, and when it shrinks.
func (n *NodeSet) ClaimRetention() (whenDeleted, whenScaled ClaimRetention) {
	policy := n.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return ClaimRetain, ClaimRetain
	}
	return nonEmptyOr(policy.WhenDeleted, ClaimRetain), nonEmptyOr(policy.WhenScaled, ClaimRetain)
}

// DatabaseClaim returns the claim of the embedded database, or nil when there is none.
func (a *Accounting) DatabaseClaim() *corev1.PersistentVolumeClaimSpec {
	if a.Spec.EmbeddedDatabase == nil {
		return nil
	}
	storage := a.Spec.EmbeddedDatabase.Storage.DeepCopy()
	return &corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: storage.StorageClassName,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: valueOr(storage.Size, resource.MustParse("10Gi")),
		}},
	}
}

// Lifetime returns the time from the issue of a token to its expiry.
func (t *Token) Lifetime() time.Duration {
	if t.Spec.Lifetime == nil || t.Spec.Lifetime.Duration <= 0 {
		return 15 * time.Minute
	}
	return t.Spec.Lifetime.Duration
}

// Refreshes reports whether the token is replaced before it expires.
func (t *Token) Refreshes() bool { return valueOr(t.Spec.Refresh, true) }

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func nonEmptyOr[T ~string](s, otherwise T) T {
	if s == "" {
		return otherwise
	}
	return s
}
