// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

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

// NodeReaction is what to do about one node after a job of a check.
type NodeReaction struct {
	Node string
	// Drain is the reason to drain the node with; empty is no drain.
	Drain string
	// Comment is what to write about the job into the node's comment; empty is nothing. Uncomment is true if what an earlier job of the check
	// left there is to be removed.
	Comment   string
	Uncomment bool
	// AddReservation and RemoveReservation are the names of reservations to make and to delete; empty is none.
	AddReservation, RemoveReservation string
}

// ReactTo returns what to do about the nodes of a job that has ended, by node name. A job that has FAILED leads to the failure
// reactions, one that is COMPLETED to the success reactions, and any other end to nothing: it proves nothing about the node.
func ReactTo(check *nebiusv1alpha1.ActiveCheck, job CheckedJob) ([]NodeReaction, problem.List) {
	var each NodeReaction
	var problems problem.List
	var add, remove *nebiusv1alpha1.Reservation
	if reactions, path := reactionsTo(&check.Spec, job.State); reactions != nil {
		text := textOf(check.Name, job)
		each.Drain, problems = drainReason(reactions, path, text)
		comment, err := commentOn(reactions, text)
		if err != nil {
			problems = append(problems, problem.Errorf(path+".commentSlurmNode", nebiusv1alpha1.ReasonInvalidSpec, "%v", err))
		}
		each.Comment = comment
		add, remove = reactions.AddReservation, reactions.RemoveReservation //nolint:staticcheck // deprecated, and in effect all the same
	}
	each.Uncomment = job.State == "COMPLETED" && each.Comment == "" && commentsFailures(&check.Spec)
	var out []NodeReaction
	for _, name := range slices.Compact(slices.Sorted(slices.Values(job.Nodes))) {
		r := each
		r.Node, r.AddReservation, r.RemoveReservation = name, reservation(add, name), reservation(remove, name)
		if r != (NodeReaction{Node: name}) {
			out = append(out, r)
		}
	}
	return out, problems
}

// reactionsTo returns the reactions to a state, and where they stand in the spec. failureReactions win over the deprecated reactions as a
// whole, so that removing a setting there does not bring back the one of the other block.
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

// textOf returns the part of a drain's reason about a job.
func textOf(check string, job CheckedJob) string {
	how := failed
	if job.State == "COMPLETED" {
		how = "Completed "
	}
	return how + check + ": job " + job.ID + " " + node.SlurmJobSuffix
}

// commentOn returns the text of a comment, empty if none is asked for.
func commentOn(r *nebiusv1alpha1.Reactions, text string) (string, error) {
	comments, err := r.CommentSlurmNode.Decode()
	if err != nil || comments == nil {
		return "", err
	}
	return node.SanitizeReason(strings.TrimSpace(comments.CommentPrefix + " " + text)), nil
}

// commentsFailures reports whether a failed job is noted in a comment.
func commentsFailures(spec *nebiusv1alpha1.ActiveCheckSpec) bool {
	reactions, _ := reactionsTo(spec, "FAILED")
	if reactions == nil {
		return false
	}
	text, _ := commentOn(reactions, "it failed")
	return text != ""
}

// CommentsOn reports whether a comment names a failed job of a check.
func CommentsOn(check, comment string) bool { return strings.Contains(comment, failed+check+": job ") }

// failed is how the text about a failed job begins.
const failed = "Failed "

// drainReason returns the reason of a drain, empty if none is asked for. A prefix of the spec wins over setCondition.
func drainReason(r *nebiusv1alpha1.Reactions, path, text string) (reason string, problems problem.List) {
	drains, err := r.DrainSlurmNode.Decode()
	if err != nil {
		problems = append(problems, problem.Errorf(path+".drainSlurmNode", nebiusv1alpha1.ReasonInvalidSpec, "%v", err))
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

// reservation returns the name of the reservation of a node; empty without a prefix.
func reservation(r *nebiusv1alpha1.Reservation, node string) string {
	if r == nil || r.Prefix == "" {
		return ""
	}
	return r.Prefix + "-" + node
}
