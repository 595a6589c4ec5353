// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules holds lists of rules to their word, in the tests of the packages that have them: no rule is without a test, and none
// without a reason.
package rules

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
)

// Main runs the tests of a package, and returns another exit code than 0 when there is a rule that none of them has reached. A run of
// only some tests proves nothing about that.
func Main(m *testing.M, lists []rule.Described) (code int) {
	flag.Parse()
	var mu sync.Mutex
	hits := map[string]map[int]bool{}
	for _, l := range lists {
		question := l.Describe().Question
		hits[question] = map[int]bool{}
		l.Trace(func(question string, line int) {
			mu.Lock()
			defer mu.Unlock()
			hits[question][line] = true
		})
	}
	code = m.Run()
	if code != 0 || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	for _, d := range rule.Words(lists) {
		for i, line := range d.Lines {
			if !hits[d.Question][i] {
				fmt.Printf("--- FAIL: no test reaches the rule %q of %q\n", line.Name, d.Question) //nolint:forbidigo // as the testing package does
				code = 1
			}
		}
	}
	return code
}

// Complete fails the test for a list that leaves facts without an answer, unless it is among those that may, and for a rule that does
// not describe what it does, or why.
func Complete(t *testing.T, lists []rule.Described, open ...string) {
	t.Helper()
	for _, d := range rule.Words(lists) {
		if !d.Complete && !slices.Contains(open, d.Question) {
			t.Errorf("the last rule of %q does not hold always", d.Question)
		}
		for _, line := range d.Lines {
			if line.Name == "" || line.Does == "" || line.Why == "" {
				t.Errorf("%q has a rule that does not say what, or why: %+v", d.Question, line)
			}
		}
	}
}
