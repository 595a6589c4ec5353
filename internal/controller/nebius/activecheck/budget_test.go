// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// react reacts to a job that failed on w-0.
func (w *world) react(run types.UID) error {
	check, _ := aCheck(w.t, "first")
	w.r.memory.enter(gpu(), origin{check: check.UID})
	return w.r.react(w.t.Context(), check, w.cache, run, activecheckplan.Conclusion{
		Job:       activecheckplan.EndedJob{CheckedJob: activecheckplan.CheckedJob{ID: "7", State: "FAILED", Nodes: []string{"w-0"}}},
		Reactions: []activecheckplan.NodeReaction{{Node: "w-0", Drain: "[hardware_problem] gpu"}},
	})
}

func (w *world) update(node, state, reason string) {
	w.t.Helper()
	if err := w.slurm.Update("root", node, state, reason); err != nil {
		w.t.Fatal(err)
	}
}

func TestWhatTheDrainOfAFailedJobMeets(t *testing.T) {
	for name, test := range map[string]struct {
		// before changes what Slurm shows, and just changes something between Slurm's last answer and the drain.
		before, just func(w *world)
		told, reason string
	}{
		"a node in service": {
			told: "drained node w-0: [hardware_problem] gpu", reason: "[hardware_problem] gpu",
		},
		"a person has just drained the node": {
			just: func(w *world) { w.update("w-0", "DRAIN", "bad disk") },
			told: "somebody else has drained node w-0", reason: "bad disk",
		},
		"a check on the node has just drained the node": {
			just: func(w *world) { w.update("w-0", "DRAIN", "[user_problem] boot_disk_full") },
			told: "somebody else has drained node w-0", reason: "[user_problem] boot_disk_full",
		},
		"a check has taken another worker out": {
			before: func(w *world) { w.update("w-1", "DRAIN", "[node_problem] disk") },
			told:   "node w-0 is not drained: checks have already taken 1 of at most 1 workers of NodeSet w out of service",
		},
		"a person has taken another worker out": {
			before: func(w *world) { w.update("w-1", "DRAIN", "bad disk") },
			told:   "drained node w-0", reason: "[hardware_problem] gpu",
		},
		"the record of the node is gone": {
			just: func(w *world) {
				if err := w.slurm.Delete("w-0"); err != nil {
					w.t.Fatal(err)
				}
			},
			told: "node w-0 does not exist any more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(w *world) {
				if test.before != nil {
					test.before(w)
				}
				w.after(time.Minute)
				if test.just != nil {
					test.just(w)
				}
				if err := w.react("run"); err != nil {
					t.Fatal(err)
				}
				if events, ok := w.told(test.told); !ok || len(events) != 1 {
					t.Errorf("told is %q, want %q", events, test.told)
				}
				if n, _ := w.slurm.Node("w-0"); n.Reason != test.reason {
					t.Errorf("the reason is %q, want %q", n.Reason, test.reason)
				}
			})
		})
	}
}

// Two runs find w-0 broken. In between, the worker that kept the disruption budget on comes back.
func TestANodeThatTheDisruptionBudgetHeldIsDrainedByALaterRun(t *testing.T) {
	simulate(t, func(w *world) {
		w.update("w-1", "DRAIN", "[node_problem] disk")
		w.after(time.Minute)
		if err := w.react("first"); err != nil {
			t.Fatal(err)
		}
		if status := w.r.budgets.Of(set()); len(status.Waiting) != 1 || status.Waiting[0] != "w-0" {
			t.Errorf("the disruption budget is %+v", status)
		}
		w.update("w-1", "RESUME", "")
		w.after(time.Minute)
		if drains := w.drains(); len(drains) > 0 {
			t.Errorf("drained is %q, although no run has found w-0 broken since", drains)
		}
		w.r.budgets.Withdraw(budgetName(gpu())) // as a run does when it begins
		if err := w.react("second"); err != nil {
			t.Fatal(err)
		}
		if n, _ := w.slurm.Node("w-0"); n.Reason != "[hardware_problem] gpu" {
			t.Errorf("the node is %+v", n)
		}
		if status := w.r.budgets.Of(set()); len(status.Waiting) > 0 || status.Out != 1 {
			t.Errorf("the disruption budget is %+v", status)
		}
	})
}

// How many are out is not known, so no node is drained, and the end of the job is not noted: the reaction follows when Slurm answers.
func TestNothingIsDrainedWhileSlurmIsSilent(t *testing.T) {
	simulate(t, func(w *world) {
		w.slurm.SetFault(func(*http.Request) *fake.Fault { return &fake.Fault{Status: http.StatusBadGateway} })
		w.after(time.Minute)
		if err := w.react("run"); !errors.Is(err, errSilent) {
			t.Errorf("it ends with %v", err)
		}
		if events, _ := w.told(""); len(events) > 0 || len(w.drains()) > 0 {
			t.Errorf("told is %q, drained %q", events, w.drains())
		}
	})
}
