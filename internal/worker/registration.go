// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// recordMismatch tells of a worker whose Slurm node has the record of another registration.
func recordMismatch(w Worker, action *Action) {
	if w.Pod.Retired != "" || !w.Pod.Ready {
		return
	}
	const out = "Drain the node and delete the pod when its jobs have ended: the record goes with it, and the next pod registers anew"
	was, _ := node.ParseComment(w.Record.Comment)
	switch {
	case w.State.Has(node.InvalidReg):
		action.trouble(slinkyv1beta1.ReasonInvalidRegistration, "slurmd on Kubernetes node %s offers less than Slurm's record of node %s wants, which gets no jobs: %s. "+out,
			w.Host.Name, w.Slurm, w.Reason.Text)
	case was.Registration != "" && w.Comment.Registration != "" && was.Registration != w.Comment.Registration:
		action.trouble(slinkyv1beta1.ReasonRecordOutdated, "the pod registers with something else than Slurm's record of node %s says, "+
			"such as another weight, other features or less memory, and Slurm goes on with the record. "+out, w.Slurm)
	}
}
