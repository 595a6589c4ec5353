// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"os"
	"slices"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/rules"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestMain runs the tests, and fails when there is a rule that none of them has reached.
func TestMain(m *testing.M) { os.Exit(rules.Main(m, lists())) }

func TestEveryListAnswersItsQuestion(t *testing.T) { rules.Complete(t, lists(), troubles.Question) }

func TestAnActionHasTheRulesThatDecidedIt(t *testing.T) {
	action := Next(Worker{
		SlurmView: SlurmView{Registered: node.Yes, State: node.Parse([]string{"ALLOCATED", "DRAIN"})},
		Pod:       workerpod.Pod{Retired: workerpod.ScaleIn, Scheduled: true},
	})
	asked := map[string]rule.Fired{}
	for _, r := range action.Rules {
		if _, twice := asked[r.Question]; twice {
			t.Errorf("%q has two answers", r.Question)
		}
		asked[r.Question] = r
	}
	if got := asked[situations.Question].Name; got != "the pod is retired" {
		t.Errorf("it is known of the worker that %s", got)
	}
	last := retiredEnds.Describe().Lines
	if got, want := asked[retiredEnds.Question].Line, last[len(last)-1]; got != want || action.Shown.Why != want.Why {
		t.Errorf("the pod stays by %+v and shows %q", got, action.Shown.Why)
	}
	if slices.ContainsFunc(action.Rules, func(r rule.Fired) bool { return r.Question == stayingStates.Question }) {
		t.Errorf("a question that nobody asked has an answer: %+v", action.Rules)
	}
}
