// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
)

type number struct {
	rule.Trail
	n int
}

func TestATrailHasTheRulesThatDecided(t *testing.T) {
	t.Parallel()
	sign := rule.List[*number, int]{Question: "Which sign?", Rules: []rule.Rule[*number, int]{
		{Name: "below zero", Does: "minus", Why: "it is less", When: func(n *number) bool { return n.n < 0 }, Then: rule.Is[*number](-1)},
		{Name: "otherwise", Does: "plus", Why: "zero has none", Then: rule.Is[*number](1)},
	}}
	even := rule.List[*number, bool]{Question: "Is it even?", Rules: []rule.Rule[*number, bool]{
		{Name: "otherwise", Does: "no", Why: "nobody looks"},
	}}
	n := &number{n: -2}
	if got := sign.Decide(n); got != -1 {
		t.Errorf("the sign of -2 is %d", got)
	}
	even.Decide(n)
	want := []rule.Fired{
		{Question: "Which sign?", Line: rule.Line{Name: "below zero", Does: "minus", Why: "it is less"}},
		{Question: "Is it even?", Line: rule.Line{Name: "otherwise", Does: "no", Why: "nobody looks"}},
	}
	if diff := cmp.Diff(want, n.Fired()); diff != "" {
		t.Error(diff)
	}
	n.n = 2
	sign.Decide(n)
	if fired := n.Fired(); len(fired) != 2 || fired[1].Name != "otherwise" || fired[1].Does != "plus" || n.LastWhy() != "zero has none" {
		t.Errorf("a question that is asked again keeps its old answer: %+v", fired)
	}
}

func TestFactsWithoutATrailAreDecidedAbout(t *testing.T) {
	t.Parallel()
	double := rule.List[int, int]{Question: "How much is twice as much?", Rules: []rule.Rule[int, int]{
		{Name: "otherwise", Does: "twice", Why: "it is asked", Then: func(n int) int { return 2 * n }},
	}}
	if got := double.Decide(21); got != 42 {
		t.Errorf("twice 21 is %d", got)
	}
}
