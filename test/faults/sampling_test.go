// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"
)

// burst is the time between two writes from which on something else may have happened between them.
const burst = 50 * time.Millisecond

// moments returns the writes at which a fault is tried: every one, or when it lasts, the first of every burst. Between the
// writes of a burst no time passes in which anybody could look.
func (f fault) moments(calls []call) []int {
	if f.always {
		return []int{0}
	}
	var out []int
	last := -time.Hour
	for i, c := range calls {
		if f.only != "" && f.only != c.to {
			continue
		}
		if !f.single && c.at-last < burst {
			last = c.at
			continue
		}
		last = c.at
		out = append(out, i+1)
	}
	return out
}

// sampled returns every n-th of the moments, beginning with the i-th; at least one.
func sampled(moments []int, n, i int) []int {
	n = min(n, len(moments))
	var out []int
	for at, k := range moments {
		if at%n == i%n {
			out = append(out, k)
		}
	}
	return out
}

// shared returns the faults that are tried in the i-th scenario, of those of all scenarios.
func shared(faults []fault, n, i int) []fault {
	var out []fault
	for at, f := range faults {
		if (at+i)%n == 0 {
			out = append(out, f)
		}
	}
	return out
}

func TestThePartsTryEveryFaultInEveryScenarioOnce(t *testing.T) {
	all := faults()
	for i := range scenarios() {
		tried := map[string]int{}
		for part := range 4 {
			for _, f := range shared(all, 4, i+part) {
				tried[f.name]++
			}
		}
		for _, f := range all {
			if tried[f.name] != 1 {
				t.Errorf("%s is tried %d times in scenario %d", f.name, tried[f.name], i)
			}
		}
	}
}

func TestEveryFaultIsTriedWhateverTheShare(t *testing.T) {
	all, scenarios := faults(), len(scenarios())
	for n := 1; n <= 8; n++ {
		tried := map[string]int{}
		for i := range scenarios {
			for _, f := range shared(all, n, i) {
				tried[f.name]++
			}
		}
		for _, f := range all {
			if tried[f.name] < scenarios/n {
				t.Errorf("with every %d-th, %s is tried in %d of %d scenarios", n, f.name, tried[f.name], scenarios)
			}
		}
	}
}
