// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Slurm keeps a drain until somebody ends it, also when its cause is gone: a registration of another slurmd, or the machine on which a
// check failed. Its reason alone is not enough to end it. So the comment of the node notes such a drain while its cause can be seen:
// docs/decisions/044.

// noted returns the comment's note about the present drain; ok is false when there is none.
func (w *Worker) noted() (note node.Comment, ok bool) {
	comment, isComment := node.ParseComment(w.Record.Comment)
	return comment, isComment && w.State.Drain() == node.Yes && comment.Notes(w.Record.Drained)
}

// drainedForRegistration reports whether slurmctld has drained the node for a registration, as the comment notes.
func (w *Worker) drainedForRegistration() bool {
	_, ok := w.noted()
	return ok && w.Record.Drained.OfRegistration()
}

// HeldSince answers whether somebody else held the node by Slurm's last answer, without a drain for a registration: slurmctld writes that
// over the reason of any earlier drain. before is the answer so far.
func (w *Worker) HeldSince(before node.Answer) node.Answer {
	switch {
	case w.Registered == node.No, w.drainedForRegistration():
		return node.No
	case w.Registered != node.Yes, w.State.Has(node.InvalidReg) && w.Record.Drained.OfRegistration():
		return before
	}
	return node.AnswerOf(node.HeldBy(w.State, w.Reason) == node.SomebodyElse)
}

// drainNotes decide the part of a comment about the drain; the rest of the result is empty.
//
//nolint:gochecknoglobals // a constant list
var drainNotes = rule.List[*recordFacts, node.Comment]{
	Question: "What does the comment of the Slurm node note about its drain?",
	Rules: []rule.Rule[*recordFacts, node.Comment]{
		{
			Name: "it notes this drain, or it is not known whether the node drains", Does: "it stays", Why: "what was seen at the time of the drain counts",
			When: func(r *recordFacts) bool { _, noted := r.noted(); return noted || r.State.Drain() == node.Unknown },
			Then: func(r *recordFacts) node.Comment { return r.comment },
		},
		{
			Name: "slurmctld has drained it for what slurmd registers with now, and nobody else had a say in it before", Does: "note the drain", Why: "it may end when another slurmd registers well",
			When: func(r *recordFacts) bool {
				return r.State.Drain() == node.Yes && r.State.Has(node.InvalidReg) && r.Record.Drained.OfRegistration() && r.Held == node.No
			},
			Then: func(r *recordFacts) node.Comment { return node.Comment{}.Noting(r.Record.Drained, "") },
		},
		{
			Name: "a check has drained it since the pod was made", Does: "note the drain and the machine", Why: "it may end when the worker runs on another machine",
			When: func(r *recordFacts) bool {
				return r.State.Drain() == node.Yes && r.drainedByCheck() && !r.Reason.Silent() && r.Reason.At.After(r.Pod.Created) && r.Host.Machine.UID != ""
			},
			Then: func(r *recordFacts) node.Comment {
				return node.Comment{}.Noting(r.Record.Drained, r.Host.Machine.String())
			},
		},
		{Name: "otherwise", Does: "nothing", Why: "there is no such drain, or it is not known what it is about: only who has set it ends it"},
	},
}

// drainedByCheck reports whether the reason is that of a check whose drain is not one of ours.
func (w *Worker) drainedByCheck() bool { return w.Reason.OfCheck() && !w.Reason.Ours() }

// endedDrains give the reason why a drain of somebody else is over; empty for one that is not. It is the text of an Event, so it names no
// machine: a thousand nodes with the same reason get one Event.
//
//nolint:gochecknoglobals // a constant list
var endedDrains = rule.List[*facts, string]{
	Question: "Is a drain over that slurmctld or a check has set?",
	Rules: []rule.Rule[*facts, string]{
		{
			Name: "the comment of the node does not note it", Does: "no", Why: "it may be that of a person, or about this machine",
			When: func(f *facts) bool { _, noted := f.noted(); return !noted },
		},
		{
			Name: "slurmd offers less than the record of the node wants", Does: "no", Why: "slurmctld would drain the node again, and refuses until then",
			When: func(f *facts) bool { return f.State.Has(node.InvalidReg) },
		},
		{
			Name: "slurmctld has set it for a registration, and a slurmd has started since and registers well", Does: "yes", Why: "the registration is gone that it was about",
			When: func(f *facts) bool { return f.drainedForRegistration() && f.Record.StartedSince },
			Then: func(f *facts) string {
				return "slurmctld drained it because of its registration (" + f.Reason.Text + "), and slurmd has since started again and registered without a problem"
			},
		},
		{
			Name: "a check has set it when the worker ran on another machine", Does: "yes", Why: "nothing is known against this machine",
			When: func(f *facts) bool {
				note, _ := f.noted()
				return workerpod.ParseMachine(note.DrainedOn).Differs(f.Host.Machine) == node.Yes
			},
			Then: func(f *facts) string { return "a check had drained it on another machine (" + f.Reason.Text + ")" },
		},
		{Name: "otherwise", Does: "no", Why: "what it is about is still there, or it is not known"},
	},
}
