// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
)

// leaves runs a test with a Slurm of each release.
func leaves(t *testing.T, test func(t *testing.T, release string, s *fake.Slurm, l *Link)) {
	t.Helper()
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		t.Run(release, func(t *testing.T) {
			leavesOf(t, release, func(t *testing.T, s *fake.Slurm, l *Link) { test(t, release, s, l) })
		})
	}
}

// leavesOf runs a test with a Slurm whose node is in the partitions main and other, and is known.
func leavesOf(t *testing.T, release string, test func(t *testing.T, s *fake.Slurm, l *Link)) {
	t.Helper()
	start := func() *fake.Slurm {
		s := fake.New(fake.Options{Release: release, Key: hmacKey})
		s.Register(fake.Node{Name: "worker-0", CPUs: 8, Partitions: []string{"main", "other"}})
		return s
	}
	simulateSlurm(t, start, func(t *testing.T, s *fake.Slurm, l *Link) {
		after(5 * time.Second)
		test(t, s, l)
	})
}

func TestAPartitionIsFreeWhenItsLastJobHasEnded(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Link) {
		running := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		waiting := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		s.Submit(fake.Job{Partition: "main", NodeList: []string{"worker-0"}})
		s.SetPartition("other", "DRAIN")
		changes := l.hub.subscribe()
		defer changes.Close()
		l.LeavePartitions("other")
		after(time.Minute)
		s.Finish(running)
		after(time.Minute)
		if l.FreePartitions()["other"] {
			t.Error("it is free with a job")
		}
		_ = taken(changes)
		s.Cancel(waiting)
		after(time.Minute)
		if !l.FreePartitions()["other"] || l.FreePartitions()["main"] {
			t.Errorf("it is free: %t, and that which is to stay: %t", l.FreePartitions()["other"], l.FreePartitions()["main"])
		}
		if got := taken(changes); !slices.Contains([]string{"main:/slurmctld", "main:/slurmctld main:worker-0", "main:worker-0 main:/slurmctld"}, got) {
			t.Errorf("changed: %s", got)
		}
		s.ResetCounters()
		after(time.Minute)
		if calls := s.Counters().Calls; calls["DELETE partition"]+calls["GET partitions"] > 0 {
			t.Errorf("it goes on to ask: %v", calls)
		}
		l.LeavePartitions()
		if l.FreePartitions()["other"] {
			t.Error("it is remembered")
		}
	})
}

func TestAPartitionOfWhichSlurmSaysNothingIsNotFree(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Link) {
		s.Stop()
		l.LeavePartitions("other")
		after(5 * time.Minute)
		if l.FreePartitions()["other"] {
			t.Error("it is free while slurmctld is away")
		}
		s.Start(true)
		s.SetPartition("other", "DRAIN")
		after(time.Minute)
		if !l.FreePartitions()["other"] {
			t.Error("it is not free when slurmctld is back")
		}
	})
}

func TestWhatAskingForPartitionsCosts(t *testing.T) {
	leaves(t, func(t *testing.T, release string, s *fake.Slurm, l *Link) {
		for range 1000 {
			s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		}
		s.SetPartition("other", "DRAIN")
		s.ResetCounters()
		l.LeavePartitions("other")
		after(10 * time.Minute)
		calls := s.Counters().Calls
		if calls["GET job"] > 0 || calls["DELETE partition"] > 61 || calls["GET jobs/state"] > 61 || release == fake.Slurm2605 && calls["GET jobs/state"] > 0 {
			t.Errorf("it asks for %v", calls)
		}
	})
}
