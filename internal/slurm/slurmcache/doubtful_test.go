// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// A flag that is not known may mean jobs. Only the list of jobs shows that it does not.
func TestANodeWithAFlagThatIsNotKnownIsFreeWhenTheListOfJobsSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		suspended bool
		drained   node.Answer
	}{
		"without jobs":         {false, node.Yes},
		"with a suspended job": {true, node.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
				id := s.Submit(fake.Job{NodeList: []string{"worker-1"}})
				if test.suspended {
					s.Suspend(id)
				} else {
					s.Finish(id)
				}
				if err := s.Update("root", "worker-1", "DRAIN", "to go"); err != nil {
					t.Fatal(err)
				}
				s.Flag("worker-1", "HIBERNATING")
				after(10 * time.Second)
				if got := l.Snapshot().State("worker-1"); got.Drained() != node.Unknown || got.Drain() != node.Yes || got.Down() != node.No {
					t.Errorf("before jobs are listed it is %s", got)
				}
				if got := l.Snapshot().Unrecognised; !slices.Equal(got, []node.Word{"HIBERNATING"}) {
					t.Errorf("not known are %v", got)
				}
				l.WantJobs("somebody", "worker-1")
				for minute := range 15 { // it stays so, however often jobs are asked for
					after(time.Minute)
					if got := l.Snapshot().State("worker-1"); got.Drained() != test.drained {
						t.Fatalf("after %d minutes it is %s", minute+1, got)
					}
				}
				if got, err := l.Confirm(t.Context(), "worker-1"); err != nil || got.State("worker-1").Drained() != test.drained {
					t.Errorf("confirmed as %s, %v", got.State("worker-1"), err)
				}
				s.Flag("worker-1")
				after(5 * time.Second)
				if got := l.Snapshot().Unrecognised; len(got) > 0 {
					t.Errorf("in the end %v are not known", got)
				}
			})
		})
	}
}
