// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import "strings"

// Holder is who decides about a node: who drained it or set it down.
type Holder int8

const (
	// Nobody has drained the node or set it down.
	Nobody Holder = iota
	// Operator is us, or slurm-operator before us.
	Operator
	// Slurm has given the node up, or has drained it because its slurmd offers too little.
	Slurm
	// SomebodyElse is an administrator, or a program of theirs.
	SomebodyElse
)

// notResponding is Slurm's own reason for a node that is DOWN. Slurm appends it to the present reason, and 24.11 also to one that was
// left over.
const notResponding = "Not responding"

// resumeTimeoutReached is Slurm's own reason for a node that did not come within ResumeTimeout. Slurm appends it, too.
const resumeTimeoutReached = "ResumeTimeout reached"

// ResumeTimeout reports whether Slurm has given up on a node that did not come within ResumeTimeout (slurm.conf(5)).
func (r Reason) ResumeTimeout() bool { return strings.HasSuffix(r.Text, resumeTimeoutReached) }

// HeldBy returns who decides about a node with this state and reason. What is not known is somebody else's: the operator must not
// overrule it. This is the one place that decides so.
func HeldBy(state State, reason Reason) Holder {
	switch {
	case reason.Ours():
		return Operator
	case state.Down().Or(state.Drain()) == No:
		return Nobody // a reason may be left over
	case state.Has(InvalidReg) && reason.Text != "":
		return Slurm
	case state.Drain() != No:
		return SomebodyElse // Slurm drains no node that it gives up
	case reason.Text == "" && state.Down().And(state.NotResponding()) == Yes, strings.HasSuffix(reason.Text, notResponding),
		reason.Text == resumeTimeoutReached:
		return Slurm
	}
	return SomebodyElse
}
