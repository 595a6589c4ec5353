// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"cmp"
	"slices"
	"strings"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// nodeProblem is what the reason of a drain begins with that also marks the Kubernetes node.
const nodeProblem = "[node_problem]"

// CheckedJob is a Slurm job of a check that has ended.
type CheckedJob struct {
	// ID is its number, with that of the task if it is one of an array: "17", "18_3".
	ID string
	// State is its base state, such as FAILED. See https://slurm.schedmd.com/job_state_codes.html
	State string
	// Nodes are the Slurm nodes that it ran on.
	Nodes []string
}

// NodeReaction is what is to be done about one node after a job of a check.
type NodeReaction struct {
	Node string
	// Drain is the reason to drain the node with; empty is no drain.
	Drain string
	// AddReservation and RemoveReservation are the names of reservations to make and to delete; empty is none.
	AddReservation, RemoveReservation string
}

// ReactTo says what is to be done about the nodes of a job that has ended, by node name. A job that has FAILED leads to the failure
// reactions, one that is COMPLETED to the success reactions, and any other end to nothing: it says nothing about the node.
func ReactTo(check *nebiusv1alpha1.ActiveCheck, job CheckedJob) ([]NodeReaction, problem.List) {
	reactions, path := reactionsTo(&check.Spec, job.State)
	if reactions == nil {
		return nil, nil
	}
	text := textOf(check.Name, job)
	drain, problems := drainReason(reactions, path, text)
	add, remove := reactions.AddReservation, reactions.RemoveReservation //nolint:staticcheck // deprecated, and in effect all the same
	var out []NodeReaction
	for _, name := range slices.Compact(slices.Sorted(slices.Values(job.Nodes))) {
		r := NodeReaction{
			Node: name, Drain: drain,
			AddReservation: reservation(add, name), RemoveReservation: reservation(remove, name),
		}
		if r != (NodeReaction{Node: name}) {
			out = append(out, r)
		}
	}
	return out, problems
}

// reactionsTo are those to a state, and where they stand in the spec. failureReactions win over the deprecated reactions as a whole, so
// that taking a switch away there does not bring that of the other block back.
func reactionsTo(spec *nebiusv1alpha1.ActiveCheckSpec, state string) (*nebiusv1alpha1.Reactions, string) {
	switch {
	case state == "COMPLETED":
		return spec.SuccessReactions, "spec.successReactions"
	case state != "FAILED":
		return nil, ""
	case spec.FailureReactions != nil:
		return spec.FailureReactions, "spec.failureReactions"
	default:
		return spec.Reactions, "spec.reactions" //nolint:staticcheck // deprecated, and in effect all the same
	}
}

// textOf is what the reason of a drain says of a job.
func textOf(check string, job CheckedJob) string {
	how := "Failed "
	if job.State == "COMPLETED" {
		how = "Completed "
	}
	return how + check + ": job " + job.ID + " " + node.SlurmJobSuffix
}

// drainReason is the reason of a drain, empty if none is asked for. A prefix of the spec wins over that of setCondition. What cannot be
// read of a comment is a mistake, although comments have no effect.
func drainReason(r *nebiusv1alpha1.Reactions, path, text string) (reason string, problems problem.List) {
	drains, err := r.DrainSlurmNode.Decode()
	if err != nil {
		problems = append(problems, problem.Errorf(path+".drainSlurmNode", nebiusv1alpha1.ReasonInvalidSpec, "%v", err))
	}
	if _, err := r.CommentSlurmNode.Decode(); err != nil {
		problems = append(problems, problem.Errorf(path+".commentSlurmNode", nebiusv1alpha1.ReasonInvalidSpec, "%v", err))
	}
	if drains == nil {
		return "", problems
	}
	prefix := drains.DrainReasonPrefix
	if r.SetCondition { //nolint:staticcheck // deprecated, and in effect all the same
		prefix = cmp.Or(prefix, nodeProblem)
	}
	return node.SanitizeReason(strings.TrimSpace(prefix + " " + text)), problems
}

// reservation is the name of the reservation of a node; empty without a prefix.
func reservation(r *nebiusv1alpha1.Reservation, node string) string {
	if r == nil || r.Prefix == "" {
		return ""
	}
	return r.Prefix + "-" + node
}
