// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// A node with only suspended jobs looks idle, unless memory is a resource of jobs: seen on Slurm 24.11.5 and 26.05.5.
func TestSuspendedJobsKeepAWorker(t *testing.T) {
	alices := []workerplan.Job{{ID: 812, User: "alice", End: noon.Add(-time.Hour)}}
	tests := []struct {
		name       string
		state      string
		pod        workerpod.Pod
		protection workerpod.Protection
		known      node.Answer
		jobs       []workerplan.Job
		timeout    time.Duration
		delete     bool
		protected  node.Answer
		asks       bool
		message    string
	}{
		{name: "a retired worker waits for suspended jobs", state: "IDLE DRAIN", pod: aPod(1, scaledIn), known: node.Yes, jobs: alices,
			asks: true, protected: node.No, message: "waiting for job 812 of alice, which is suspended"},
		{name: "a retired worker waits to hear whether jobs are suspended", state: "IDLE DRAIN", pod: aPod(1, scaledIn),
			asks: true, protected: node.No, message: "waiting for Slurm to report whether suspended jobs are on the node"},
		{name: "a retired worker goes when no jobs are suspended", state: "IDLE DRAIN", pod: aPod(1, scaledIn), known: node.Yes,
			asks: true, delete: true, protected: node.No, message: "retired (scale-in) and drained"},
		{name: "a retired worker goes when the time of its suspended jobs is over", state: "IDLE DRAIN", pod: aPod(1, scaledIn), known: node.Yes, jobs: alices, timeout: time.Minute,
			asks: true, delete: true, protected: node.No, message: "retired (scale-in), and spec.drainTimeout of 1m0s is over"},
		{name: "a node that was given up and drained is asked about, too", state: "DOWN DRAIN", pod: aPod(1, scaledIn),
			asks: true, protected: node.No, message: "waiting for Slurm to report whether suspended jobs are on the node"},
		{name: "a drained worker stays protected until it is known whether jobs are suspended", state: "IDLE DRAIN", pod: aPod(1, cordoned, protected), protection: workerpod.UntilDrained,
			asks: true, protected: node.Yes, message: "the pod is cordoned"},
		{name: "a drained worker stays protected while jobs are suspended", state: "IDLE DRAIN", pod: aPod(1, cordoned, protected), protection: workerpod.UntilDrained, known: node.Yes, jobs: alices,
			asks: true, protected: node.Yes, message: "the pod is cordoned"},
		{name: "a drained worker may be evicted when no jobs are suspended", state: "IDLE DRAIN", pod: aPod(1, cordoned, protected), protection: workerpod.UntilDrained, known: node.Yes,
			asks: true, protected: node.No, message: "the pod is cordoned"},
		{name: "nobody asks again about a drained worker that may be evicted", state: "IDLE DRAIN", pod: aPod(1, cordoned), protection: workerpod.UntilDrained,
			protected: node.Unknown, message: "the pod is cordoned"},
		{name: "nobody asks about an idle worker that is not protected", state: "IDLE", pod: aPod(1), protected: node.No},
		{name: "an idle worker is protected like a busy one while jobs are suspended", state: "IDLE", pod: aPod(1, protected), protection: workerpod.WhileBusy, known: node.Yes, jobs: alices,
			asks: true, protected: node.Yes},
		{name: "an idle worker stays protected until it is known whether jobs are suspended", state: "IDLE", pod: aPod(1, protected), protection: workerpod.WhileBusy, asks: true, protected: node.Unknown},
		{name: "an idle worker may be evicted when no jobs are suspended", state: "IDLE", pod: aPod(1, protected), protection: workerpod.WhileBusy, known: node.Yes, asks: true, protected: node.No},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)}, JobsKnown: tt.known, Jobs: tt.jobs},
				Pod:       tt.pod,
				Host:      anUncordonedNode,
				Wanted:    workerplan.Wanted{Protection: tt.protection, DrainTimeout: tt.timeout},
			})
			if got.Shown.WaitsForJobs != strings.HasPrefix(tt.message, "waiting for job") {
				t.Errorf("waits for jobs: %t", got.Shown.WaitsForJobs)
			}
			if got.Deletion.Delete != tt.delete || got.Marks.Protected != tt.protected || got.Questions.WantJobs != tt.asks || got.Shown.Message != tt.message {
				t.Errorf("deletes %t, protected %v, asks %t, says %q", got.Deletion.Delete, got.Marks.Protected, got.Questions.WantJobs, got.Shown.Message)
			}
		})
	}
}

func TestTheJobsOfANodeWithAFlagThatIsNotKnownAreAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		state      string
		pod        workerpod.Pod
		protection workerpod.Protection
		asks       bool
	}{
		"jobs are asked for before a retired worker goes":                                   {"IDLE DRAIN HIBERNATING", aPod(1, scaledIn), workerpod.Unprotected, true},
		"jobs are not asked for while the node may get some":                                {"IDLE HIBERNATING", aPod(1, scaledIn), workerpod.Unprotected, false},
		"jobs are asked for before a protection ends":                                       {"IDLE HIBERNATING", aPod(1, protected), workerpod.WhileBusy, true},
		"jobs are asked for before a protection ends that lasts until the node has drained": {"DOWN DRAIN HIBERNATING", aPod(1, cordoned, protected), workerpod.UntilDrained, true},
		"jobs are not asked for when the base of the node's state is not known":             {"HIBERNATING DRAIN", aPod(1, scaledIn), workerpod.Unprotected, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(test.state)), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)}},
				Pod:       test.pod,
				Host:      anUncordonedNode,
				Wanted:    workerplan.Wanted{Protection: test.protection},
			}
			if got := workerplan.Next(w); got.Questions.WantJobs != test.asks || got.Deletion.Delete {
				t.Errorf("asks %t, deletes %t", got.Questions.WantJobs, got.Deletion.Delete)
			}
			w.JobsKnown = node.Yes // a list of jobs alone frees nobody: the Slurm cache decides by the state
			if got := workerplan.Next(w); got.Deletion.Delete {
				t.Error("it goes")
			}
		})
	}
}

// Of many that are cordoned at once, most would be written to just before their protection ends, which is a write as well.
func TestADrainIsShownTogetherWithTheEndOfTheProtection(t *testing.T) {
	w := workerplan.Worker{
		Now:       noon,
		SlurmView: workerplan.SlurmView{SnapshotTime: noon, Registered: node.Yes, JobsKnown: node.Unknown, SlurmStateLost: node.No, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Second)}},
		Pod:       aPod(1, cordoned, protected),
		Host:      anUncordonedNode,
		Wanted:    workerplan.Wanted{Protection: workerpod.UntilDrained},
	}
	if action := workerplan.Next(w); !action.Shown.Brief || action.Marks.Protected != node.Yes || !action.Again.Equal(noon.Add(4*time.Second)) {
		t.Errorf("a second after the drain: brief %t, protected %v, again at %s", action.Shown.Brief, action.Marks.Protected, action.Again)
	}
	w.Now = noon.Add(4 * time.Second)
	if action := workerplan.Next(w); action.Shown.Brief || action.Marks.Protected != node.Yes {
		t.Errorf("five seconds after the drain: brief %t, protected %v", action.Shown.Brief, action.Marks.Protected)
	}
	w.Now, w.JobsKnown = noon, node.Yes
	if action := workerplan.Next(w); action.Shown.Brief || action.Marks.Protected != node.No {
		t.Errorf("when the jobs are known: brief %t, protected %v", action.Shown.Brief, action.Marks.Protected)
	}
	w.JobsKnown, w.Pod.Protected = node.Unknown, false
	if action := workerplan.Next(w); action.Shown.Brief {
		t.Error("nothing is shown of a worker that has lost its protection")
	}
}

// Of many that are scaled in, most would be written to just before they go.
func TestWhatLastsAMomentIsNotShownOfARetiredWorker(t *testing.T) {
	w := workerplan.Worker{
		Now:       noon,
		SlurmView: workerplan.SlurmView{SnapshotTime: noon, Registered: node.Yes, JobsKnown: node.Unknown, SlurmStateLost: node.No, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Second)}},
		Pod:       aPod(1, scaledIn),
	}
	w.Pod.RetiredAt = noon.Add(-2 * time.Second)
	if action := workerplan.Next(w); !action.Shown.Brief || action.Deletion.Delete || !action.Again.Equal(noon.Add(4*time.Second)) {
		t.Errorf("a second after the drain: brief %t, deleted %t, again at %s", action.Shown.Brief, action.Deletion.Delete, action.Again)
	}
	w.Now = noon.Add(4 * time.Second)
	if action := workerplan.Next(w); action.Shown.Brief || action.Shown.Message != "waiting for Slurm to report whether suspended jobs are on the node" {
		t.Errorf("five seconds after the drain: brief %t, %q", action.Shown.Brief, action.Shown.Message)
	}
	w.Now, w.JobsKnown = noon, node.Yes
	if action := workerplan.Next(w); action.Shown.Brief || !action.Deletion.Delete {
		t.Errorf("once the jobs are known: brief %t, deleted %t", action.Shown.Brief, action.Deletion.Delete)
	}
}

func TestADrainIsNotRenewedForARetirementWhileItMayEndInAMoment(t *testing.T) {
	w := workerplan.Worker{
		Now:       noon,
		SlurmView: workerplan.SlurmView{SnapshotTime: noon, Registered: node.Yes, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: cordonReason, At: noon.Add(-time.Hour)}},
		Pod:       aPod(1, scaledIn),
	}
	if action := workerplan.Next(w); action.StateChange.Drain != "" || action.Deletion.Delete {
		t.Errorf("before the jobs are known: %+v", action)
	}
	w.JobsKnown, w.Jobs = node.Yes, []workerplan.Job{{ID: 1}}
	if action := workerplan.Next(w); action.StateChange.Drain != drainReason {
		t.Errorf("with a job: %+v", action)
	}
}
