// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Cause is why a worker is retired.
type Cause string

// The causes for which workers are retired.
const (
	// ScaleIn: there are more workers than wanted, or its Kubernetes node does not fit it any more.
	ScaleIn Cause = "scale-in"
	// Update: the worker is of an old revision, and its successor will be of the new one.
	Update Cause = "update"
	// Replace: the worker was made for another scaling mode or has another host name than it should have now.
	Replace Cause = "replace"
	// Unregistered: the worker runs, and Slurm does not have its node.
	Unregistered Cause = "unregistered"
)

// Pod is what the plan needs to know about a worker pod.
type Pod struct {
	Name string
	// Ordinal is its number; negative when it has none, as in scaling mode DaemonSet.
	Ordinal int
	// Daemon reports whether it was made in scaling mode DaemonSet.
	Daemon bool
	// Node is the Kubernetes node on which it runs, or to which it is bound before it is scheduled; empty for any.
	Node string
	// Hostname is its host name.
	Hostname string
	Revision string
	// Phase is the pod's phase as Kubernetes names it.
	Phase string
	// Scheduled reports whether it has a Kubernetes node.
	Scheduled bool
	// Unschedulable reports whether Kubernetes has found no node for it.
	Unschedulable bool
	// Ready is its Ready condition, and ReadySince since when it has been so, true or false.
	Ready      bool
	ReadySince time.Time
	// Unchecked are the checks that the pod was made to need, and that have passed on no machine yet.
	Unchecked []string
	// Terminating reports whether it is being deleted already.
	Terminating bool
	// Retired is the cause for which it was marked before; empty when it was not.
	Retired Cause
	// RetiredAt is since when it is to go, for whatever cause; zero when that is not noted.
	RetiredAt time.Time
	// Cordoned reports whether somebody asked for its Slurm node to be drained.
	Cordoned bool
	// Protected reports whether it carries the label that keeps it from being evicted.
	Protected bool
	// DeletionCost is the user's; the lower goes first.
	DeletionCost int32
	// Busy reports whether jobs ran on its Slurm node by Slurm's last answer about it.
	Busy bool
	// Deadline is when the last of its jobs must end; zero when it has none, or one without end, if DeadlineKnown. It is also zero when it is
	// not known.
	Deadline      time.Time
	DeadlineKnown bool
	Created       time.Time
	// Absent is since when Slurm, whenever it was asked, did not have its node; zero when it has, or it is not known.
	Absent time.Time
	// RegisteredAs is the Slurm node that its slurmd has registered as, if that is not the expected one.
	RegisteredAs string
	// Registered answers whether Slurm has its node, and Maintained whether that is in the maintenance of a ScheduledUpdate. Both are Unknown
	// unless Slurm has just answered, and where nobody needs to know.
	Registered node.Answer
	Maintained node.Answer
	// Was reports whether Slurm has had its node since it runs, and Forgotten whether Slurm lost it together with most others.
	Was       bool
	Forgotten bool
}
