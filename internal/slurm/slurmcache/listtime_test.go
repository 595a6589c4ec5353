// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// setBack sets back the clock of a slurmctld that has been answering for a while, and starts a job and a drain.
func setBack(t *testing.T, s *fake.Slurm, l *Cache) {
	t.Helper()
	after(10 * time.Second)
	s.Register(fake.Node{Name: "late"}) // so that there is a new list
	after(5 * time.Second)
	s.StepBack(time.Hour)
	after(3 * time.Second)
	s.Submit(fake.Job{NodeList: []string{"worker-1"}})
	if err := s.Update("root", "worker-2", "DRAIN", "a disk"); err != nil {
		t.Fatal(err)
	}
	after(5 * time.Second)
	if got := l.Snapshot(); got.State("worker-1").Busy() != node.No || got.State("worker-2").Drain() != node.No || got.Trust != Fresh {
		t.Fatalf("the test is in vain: %s", states(got))
	}
}

func TestAClockThatWasSetBackHidesNothing(t *testing.T) {
	const want = "late=IDLE worker-0=IDLE worker-1=ALLOCATED worker-2=IDLE+DRAIN"
	for name, look := range map[string]func(t *testing.T, l *Cache) *Snapshot{
		"from whom Confirm asks for": func(t *testing.T, l *Cache) *Snapshot {
			t.Helper()
			snapshot, err := l.Confirm(t.Context(), "worker-1")
			if err != nil {
				t.Fatal(err)
			}
			return snapshot
		},
		"for longer than half a minute": func(_ *testing.T, l *Cache) *Snapshot {
			after(clockInterval)
			return l.Snapshot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
				setBack(t, s, l)
				got := look(t, l)
				if states(got) != want || got.Trust != Fresh {
					t.Errorf("%s, %s", states(got), got.Trust)
				}
				if got.Ahead != -time.Hour {
					t.Errorf("Slurm's clock is taken to be %s ahead", got.Ahead)
				}
				s.ResetCounters()
				after(10 * time.Second)
				if c := s.Counters(); c.Unchanged < c.Calls["GET nodes"] {
					t.Errorf("and then %d of %d answers were lists", c.Calls["GET nodes"]-c.Unchanged, c.Calls["GET nodes"])
				}
			})
		})
	}
}

func TestASlurmThatDoesNotTellTheTimeIsAskedForAList(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		setBack(t, s, l)
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.Contains(r.URL.Path, "/diag") {
				return &fake.Fault{Error: &fake.Error{Number: 2002, Text: "Access/permission denied"}}
			}
			return nil
		})
		if got, err := l.Confirm(t.Context(), "worker-1"); err != nil || got.State("worker-1").Busy() != node.Yes {
			t.Errorf("confirmed as %s, %v", got.State("worker-1"), err)
		}
	})
}

func TestAfterAFailureTheClockIsLookedAtWithTheNextAnswer(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		after(10 * time.Second)
		s.Register(fake.Node{Name: "late"})
		after(5 * time.Second)
		s.Stop()
		after(3 * time.Second)
		s.StepBack(time.Hour)
		s.Start(true)
		s.Submit(fake.Job{NodeList: []string{"worker-1"}})
		after(5 * time.Second)
		if got := l.Snapshot(); got.State("worker-1").Busy() != node.Yes {
			t.Errorf("seen as %s", states(got))
		}
	})
}

func TestJobsAreListedWhenTheClockWasSetBack(t *testing.T) {
	alone(t, 2, func(t *testing.T, s *fake.Slurm, p *parts) {
		poller := newNodePoller(time.Second, p.connection, p.view, p.load, p.done)
		poller.publish, poller.answered, poller.trustChanged = p.publish, func() {}, func() {}
		follower := newJobFollower(p.connection, p.view, p.load, p.publish)
		follower.want("somebody", []string{"worker-0"})
		see := func() []JobOnNode {
			t.Helper()
			poller.relist()
			if err := poller.poll(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			follower.poll(t.Context())
			jobs, _ := p.view.snapshot().Jobs("worker-0")
			return jobs
		}
		s.Submit(fake.Job{NodeList: []string{"worker-0"}, CPUs: 1})
		time.Sleep(5 * time.Second)
		if got := see(); len(got) != 1 {
			t.Fatalf("at first: %v", got)
		}
		s.StepBack(time.Hour)
		time.Sleep(3 * time.Second)
		s.Submit(fake.Job{NodeList: []string{"worker-0"}, CPUs: 1})
		time.Sleep(30 * time.Second)
		if got := see(); len(got) != 2 {
			t.Errorf("then: %v", got)
		}
	})
}

func TestATimeOfANodeIsNoLaterThanTheNodeWasSeenToHaveIt(t *testing.T) {
	list := listOf("a=IDLE+DRAIN")
	list.Updated = noon.Add(time.Hour)
	list.Nodes[0].ReasonTime = noon.Add(time.Hour - 10*time.Second) // the clock is an hour ahead
	s, changed := (&Snapshot{}).following(noon, list, nil)
	s = s.withChanges(changed, noon)
	if got := s.Ours("a", s.Reason("a").At); !got.Equal(noon.Add(-10 * time.Second)) {
		t.Errorf("by a clock that is ahead: %s", got)
	}
	later := rest.NodeList{Nodes: list.Nodes, Updated: noon.Add(time.Minute)} // another one shows the same as ours
	s, changed = s.following(noon.Add(time.Minute), later, nil)
	s = s.withChanges(changed, noon.Add(time.Minute))
	if got := s.Ours("a", s.Reason("a").At); !got.Equal(noon) {
		t.Errorf("by the clock of a slurmctld that is gone: %s", got)
	}
	if !s.Ours("a", time.Time{}).IsZero() {
		t.Error("no time became one")
	}
}
