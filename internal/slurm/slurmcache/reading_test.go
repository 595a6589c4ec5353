// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// configuration is one that slurmctld has read, or has not.
func configuration(digest string, read bool) Configuration {
	return Configuration{Digest: digest, Loaded: func(Daemons) bool { return read }}
}

// renews runs a test with workers 0 and 1; a waiting job names worker 0.
func renews(t *testing.T, test func(t *testing.T, s *fake.Slurm, l *Cache)) {
	t.Helper()
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		s.Register(fake.Node{Name: "worker-1", CPUs: 8})
		if err := s.Update("slurm", "worker-[0-1]", "DRAIN", "going"); err != nil {
			t.Fatal(err)
		}
		s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		after(time.Minute)
		test(t, s, l)
	})
}

// renew deletes the records of both workers, and fails the test unless the records left remain.
func renew(t *testing.T, s *fake.Slurm, l *Cache, left ...string) {
	t.Helper()
	failures := l.Renew(t.Context(), []string{"worker-0", "worker-1"})
	for _, name := range left {
		if !errors.Is(failures[name], ErrNamed) {
			t.Errorf("the record of %s: %v", name, failures[name])
		}
	}
	if got := s.Names(); !slices.Equal(got, left) || len(failures) != len(left) {
		t.Errorf("the records of %v are left, and not those of %v: %v", got, left, failures)
	}
}

func TestARecordThatAJobNamesStaysWhileAConfigurationIsOnItsWay(t *testing.T) {
	for _, tt := range []struct {
		name string
		say  func(l *Cache)
		left []string
	}{
		{"nobody has said what slurmctld is to read", func(*Cache) {}, []string{"worker-0"}},
		{"slurmctld has not read the configuration", func(l *Cache) { l.Configure(configuration("a", false)) }, []string{"worker-0"}},
		{"slurmctld has read the configuration", func(l *Cache) { l.Configure(configuration("a", true)) }, nil},
		{"another configuration is on its way", func(l *Cache) {
			l.Configure(configuration("a", true))
			l.Configure(configuration("b", false))
		}, []string{"worker-0"}},
		{"another configuration was on its way a moment ago", func(l *Cache) {
			l.Configure(configuration("a", true))
			l.Configure(configuration("b", false))
			l.Configure(configuration("a", true))
		}, []string{"worker-0"}},
		{"another configuration was on its way long ago", func(l *Cache) {
			l.Configure(configuration("b", false))
			l.Configure(configuration("a", true))
			after(readTimeout + time.Second)
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			renews(t, func(t *testing.T, s *fake.Slurm, l *Cache) {
				tt.say(l)
				renew(t, s, l, tt.left...)
			})
		})
	}
}

func TestASlurmctldThatDoesNotTellWhatItHasReadIsGivenTime(t *testing.T) {
	renews(t, func(t *testing.T, s *fake.Slurm, l *Cache) {
		l.Attend(Interest{Settled: func(d Daemons) bool { return d.Release != "" }})
		l.Configure(Configuration{Digest: "a", Loaded: func(d Daemons) bool { return d.Loaded }})
		after(time.Minute)
		if l.Daemons().Loaded {
			renew(t, s, l)
			return
		}
		renew(t, s, l, "worker-0")
		after(readTimeout)
		renew(t, s, l)
	})
}

func TestWhoAsksForARecordThatAJobNamesIsRefusedWithoutALookAtTheJobs(t *testing.T) {
	renews(t, func(t *testing.T, s *fake.Slurm, l *Cache) {
		renew(t, s, l, "worker-0")
		before := s.Counters().Calls["GET job"]
		for range 3 {
			if err := l.Renew(t.Context(), []string{"worker-0"})["worker-0"]; !errors.Is(err, ErrNamed) {
				t.Error(err)
			}
		}
		if asked := s.Counters().Calls["GET job"] - before; asked > 0 {
			t.Errorf("%d jobs were looked at", asked)
		}
		s.Cancel(1)
		after(leavingInterval)
		renew(t, s, l)
	})
}

func TestANodeWithoutARecordEndangersTheJobThatNamesItUntilItHasRegistered(t *testing.T) {
	renews(t, func(t *testing.T, s *fake.Slurm, l *Cache) {
		l.Configure(configuration("a", true))
		renew(t, s, l)
		if absent := l.Configure(configuration("b", false)); !slices.Equal(absent, []string{"worker-0", "worker-1"}) {
			t.Errorf("%v are absent", absent)
		}
		endangered := func(want ...string) {
			t.Helper()
			if got, err := l.Endangered(t.Context()); err != nil || !slices.Equal(got, want) {
				t.Errorf("endangered are %v, want %v; %v", got, want, err)
			}
		}
		endangered("worker-0")
		after(time.Hour)
		endangered("worker-0")
		changes := l.hub.subscribe()
		defer changes.Close()
		s.Register(fake.Node{Name: "worker-0", CPUs: 4})
		after(time.Minute)
		if absent := l.Absent(); len(absent) > 0 {
			t.Errorf("%v are absent although they have registered", absent)
		}
		if !strings.Contains(taken(changes), ":"+Slurmctld) {
			t.Error("nobody is told that they have registered")
		}
		endangered()
	})
}

func TestHowLongANodeOfWhichNobodyKnowsWhetherJobsNameItIsWaitedFor(t *testing.T) {
	renews(t, func(t *testing.T, s *fake.Slurm, l *Cache) {
		l.Configure(configuration("a", true))
		renew(t, s, l)
		for range maxJobsLookedAt {
			s.Submit(fake.Job{Nodes: 1})
		}
		if got, err := l.Endangered(t.Context()); err != nil || len(got) != 2 {
			t.Errorf("endangered are %v; %v", got, err)
		}
		after(maxAbsence + time.Second)
		if got, err := l.Endangered(t.Context()); err != nil || len(got) > 0 {
			t.Errorf("endangered are %v at last; %v", got, err)
		}
	})
}
