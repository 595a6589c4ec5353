// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
)

// TestMain runs the tests, and fails when there is a rule that none of them has reached.
func TestMain(m *testing.M) {
	flag.Parse()
	var mu sync.Mutex
	hits := map[string]map[int]bool{}
	for _, l := range lists() {
		question := l.Describe().Question
		hits[question] = map[int]bool{}
		l.Trace(func(question string, line int) {
			mu.Lock()
			defer mu.Unlock()
			hits[question][line] = true
		})
	}
	code := m.Run()
	if run := flag.Lookup("test.run").Value.String(); code == 0 && run == "" && flag.Lookup("test.list").Value.String() == "" {
		for _, d := range Rules() {
			for i, line := range d.Lines {
				if !hits[d.Question][i] {
					fmt.Printf("--- FAIL: no test reaches the rule %q of %q\n", line.Name, d.Question)
					code = 1
				}
			}
		}
	}
	os.Exit(code)
}

func TestEveryListAnswersItsQuestion(t *testing.T) {
	for _, d := range Rules() {
		if !d.Complete {
			t.Errorf("the last rule of %q does not hold always", d.Question)
		}
		for _, line := range d.Lines {
			if line.Name == "" || line.Does == "" || line.Why == "" {
				t.Errorf("%q has a rule that does not say what, or why: %+v", d.Question, line)
			}
		}
	}
}
