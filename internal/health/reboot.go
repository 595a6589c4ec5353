// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Reboot is what condition SoperatorChecksNodeDegraded of a Kubernetes node means for its workers. The zero value is nothing. It can be
// compared.
type Reboot struct {
	// Watched is true if degraded nodes are rebooted. Otherwise nothing is known of what a machine was rebooted for.
	Watched bool
	// Wanted is true if the workers are to drain, because the machine is to be rebooted, and Unknown if that is not known.
	Wanted, Unknown bool
	// Rebooted is true if the machine has been rebooted for it.
	Rebooted bool
	// Since is when that changed last; zero if the condition was never set.
	Since time.Time
}

// RebootOf returns what a Kubernetes node shows about its reboot: nothing unless degraded nodes are rebooted.
func (c Conditions) RebootOf(n *corev1.Node) Reboot {
	if !c.RebootDegraded {
		return Reboot{}
	}
	degraded := ConditionOf(n, NodeDegraded)
	return Reboot{
		Watched: true,
		Wanted:  degraded.is(corev1.ConditionTrue), Unknown: degraded.unknown(), Since: degraded.Since,
		Rebooted: degraded.is(corev1.ConditionFalse) && degraded.Reason == ReasonNodeRebooted,
	}
}

// clockTolerance is how far a time of Slurm's may be off by our clock: the Slurm cache does not follow small differences.
const clockTolerance = 2 * time.Minute

// Over reports whether a drain which took the place of Slurm's Kill task failed may end: the machine has been rebooted since, or the pod
// runs on another one. The machine on which the process was shows that it is to be rebooted, or has stopped showing it since the drain.
func (r Reboot) Over(reason node.Reason) bool {
	switch {
	case !r.Watched || r.Wanted || r.Unknown || reason.At.IsZero():
		return false
	case !r.Since.IsZero() && r.Since.Add(clockTolerance).After(reason.At):
		return r.Rebooted
	}
	return true
}
