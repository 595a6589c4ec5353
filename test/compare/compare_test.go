// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compare holds the fake slurmctld of the tests against real ones: both are put through the same operations, and after
// each of them they have to show the same states, reasons, times of reasons and jobs. "make compare" runs it, on both
// releases, with the daemons of the images.
package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// settles is how long a real Slurm may take until it shows what the fake shows at once: a slurmd that is gone is noticed
// after SlurmdTimeout.
const settles = 45 * time.Second

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
		want, got := step.do(b), step.do(a)
		if want != got {
			t.Errorf("%s: the fake says %q, Slurm %s says %q", name, got, root.Release, want)
		}
		shown, diff := settle(t, a, b, patience)
		t.Logf("%s: %s\n%s", name, want, shown)
		if diff != "" {
			t.Errorf("%s: Slurm %s (-), fake (+):\n%s", name, root.Release, diff)
			patience = 4 * time.Second // what follows may be different in consequence
		}
	}
}

// settle waits until both show the same, twice, and otherwise returns what the real Slurm shows and in what they
// differ.
func settle(t *testing.T, a, b *system, patience time.Duration) (want, diff string) {
	t.Helper()
	for deadline, same := time.Now().Add(patience), 0; ; {
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
			diff, same = cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")), 0
		}
		if time.Now().After(deadline) {
			return want, diff
		}
		time.Sleep(300 * time.Millisecond) // the real Slurm tells nobody
	}
}

// waitForNextSecond lets each step have seconds of its own, in which Slurm tells times.
func waitForNextSecond() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1050 * time.Millisecond)))
}
