// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compare compares the fake slurmctld of the tests with real ones: both are put through the same operations. After each of
// them they have to show the same states, reasons, jobs and reservations, and to have given the same answer. Times of reasons are
// compared by the step in which they changed. What differs from the original is mended: the fake, or what relied on it;
// never the expectation. What is not compared has its reason where it is left out.
//
// "make compare" runs it, on both releases, with the daemons of the images (package realslurm); it is part of "make test".
package compare

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// step is an operation. What do returns, for example a refusal, has to be the same, too.
type step struct {
	name string
	do   func(s *system) string
}

// scenario is a number of steps on one cluster.
type scenario struct {
	name string
	// conf are lines of the real slurm.conf.
	conf string
	// memory makes memory a resource.
	memory bool
	steps  []step
}

// settles is how long the real Slurm may take until it shows what the fake shows at once. Some things it does every ten seconds; the rest
// is for a machine that is busy with other things.
const settles = 90 * time.Second

func TestTheFakeIsLikeTheOriginal(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		for _, c := range scenarios() {
			t.Run(root.Release+" "+c.name, func(t *testing.T) {
				t.Parallel()
				compare(t, root, c)
			})
		}
	}
}

func compare(t *testing.T, root realslurm.Root, c scenario) {
	a, b := imitation(t, root.Release, c.memory), original(t, root, c.conf, c.memory)
	patience := settles
	for i, step := range c.steps {
		waitForNextSecond()
		name := fmt.Sprintf("step %d, %s", i+1, step.name)
		a.step, b.step = i+1, i+1
		began := time.Now()
		want, got := step.do(b), step.do(a)
		if want != got {
			t.Errorf("%s: the fake says %q, Slurm %s says %q", name, got, root.Release, want)
		}
		shown, diff := settle(t, a, b, patience)
		if testing.Verbose() { // of a failure that would be the bulk
			t.Logf("%s: %s (%s)\n%s", name, want, time.Since(began).Round(100*time.Millisecond), shown)
		}
		if diff != "" {
			t.Errorf("%s: after %s Slurm %s (-), fake (+):\n%s", name, time.Since(began).Round(100*time.Millisecond), root.Release, diff)
			patience = 2 * time.Second // what follows may be different in consequence
		}
	}
}

// settle waits until both show the same, twice, and otherwise returns what the real Slurm shows and in what they
// differ.
func settle(t *testing.T, a, b *system, patience time.Duration) (want, diff string) {
	t.Helper()
	tick := time.NewTicker(300 * time.Millisecond) // the real Slurm tells nobody
	defer tick.Stop()
	for deadline, same := time.Now().Add(patience), 0; ; <-tick.C {
		got, err := a.look()
		if err != nil {
			t.Fatal(err)
		}
		want, err = b.look()
		switch {
		case err != nil:
			diff = err.Error()
		case want == got:
			diff = ""
			if same++; same == 2 {
				return want, ""
			}
		default:
			diff, same = difference(want, got), 0
		}
		if time.Now().After(deadline) {
			return want, diff
		}
	}
}

// difference has the lines that only one of two texts has.
func difference(want, got string) string {
	var out strings.Builder
	for _, side := range []struct{ sign, of, other string }{{"-", want, got}, {"+", got, want}} {
		others := strings.Split(side.other, "\n")
		for line := range strings.SplitSeq(side.of, "\n") {
			if !slices.Contains(others, line) {
				fmt.Fprintf(&out, "%s %s\n", side.sign, line)
			}
		}
	}
	return out.String()
}

// waitForNextSecond gives each step seconds of its own: Slurm's times are in seconds.
func waitForNextSecond() {
	<-time.After(time.Until(time.Now().Truncate(time.Second).Add(1050 * time.Millisecond)))
}
