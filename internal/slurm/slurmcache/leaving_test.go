// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// leaves runs a test with a Slurm of each release.
func leaves(t *testing.T, test func(t *testing.T, release string, s *fake.Slurm, l *Cache)) {
	t.Helper()
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		t.Run(release, func(t *testing.T) {
			leavesOf(t, release, func(t *testing.T, s *fake.Slurm, l *Cache) { test(t, release, s, l) })
		})
	}
}

// leavesOf runs a test with a Slurm whose node is in the partitions main and other, and is known.
func leavesOf(t *testing.T, release string, test func(t *testing.T, s *fake.Slurm, l *Cache)) {
	t.Helper()
	start := func() *fake.Slurm {
		s := fake.New(fake.Options{Release: release, Key: hmacKey})
		s.Register(fake.Node{Name: "worker-0", CPUs: 8, Partitions: []string{"main", "other"}})
		return s
	}
	simulateSlurm(t, start, func(t *testing.T, s *fake.Slurm, l *Cache) {
		after(5 * time.Second)
		test(t, s, l)
	})
}

func TestAPartitionIsFreeWhenItsLastJobHasEnded(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
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
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
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
	leaves(t, func(t *testing.T, release string, s *fake.Slurm, l *Cache) {
		for range maxJobsCounted + 1 {
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

// slowly lets slurmrestd work for the time took for answers whose path has one of the parts.
func slowly(s *fake.Slurm, took time.Duration, parts ...string) {
	s.SetFault(func(r *http.Request) *fake.Fault {
		if slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(r.URL.Path, part) }) {
			return &fake.Fault{Latency: took}
		}
		return nil
	})
}

// Before 26.05 jobs are read one by one. Questions about jobs have a 125th of slurmrestd's time, and 480 ms after a rest.
func TestJobsThatMayNeedAPartitionAreReadWithinTheShareOfJobs(t *testing.T) {
	const jobs, took = 100, 50 * time.Millisecond
	leavesOf(t, fake.Slurm2411, func(t *testing.T, s *fake.Slurm, l *Cache) {
		for range jobs {
			s.Submit(fake.Job{Partition: "main", NodeList: []string{"worker-0"}})
		}
		s.SetPartition("other", "DRAIN")
		slowly(s, took, "/job/", "/jobs/state")
		l.leaving.leave([]string{"other"}) // and its jobs are not counted for people
		questions := func() int { return s.Counters().Calls["GET job"] + s.Counters().Calls["GET jobs/state"] }
		for minute := time.Minute; minute <= 5*time.Minute; minute += time.Minute {
			after(time.Minute)
			share := int((480*time.Millisecond + minute/125) / took)
			if got := questions(); got > share+1 || got < share-1 { // the last one may take what there is not
				t.Errorf("within %s there were %d questions, want %d", minute, got, share)
			}
		}
		after(10 * time.Minute)
		if got := questions(); got != jobs+2 || !l.FreePartitions()["other"] {
			t.Errorf("it is free: %t, after %d questions, want one for each job, and two for their states", l.FreePartitions()["other"], got)
		}
		l.leaving.leave([]string{"main"}) // one job is enough to show that it is needed, and the same is read again
		s.SetPartition("main", "DRAIN")
		after(10 * time.Minute)
		s.ResetCounters()
		after(10 * time.Minute)
		if calls := s.Counters().Calls; calls["GET job"] != calls["GET jobs/state"] || l.FreePartitions()["main"] {
			t.Errorf("it is free: %t; the questions are %v", l.FreePartitions()["main"], calls)
		}
	})
}

// A task of an array that starts is a job of its own, with a number that no earlier list had.
func TestATaskThatStartsWhileJobsAreLookedForKeepsItsPartition(t *testing.T) {
	leavesOf(t, fake.Slurm2411, func(t *testing.T, s *fake.Slurm, l *Cache) {
		for range 100 {
			s.Submit(fake.Job{Partition: "main", NodeList: []string{"worker-0"}})
		}
		last := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		slowly(s, 50*time.Millisecond, "/job/", "/jobs/state")
		s.SetPartition("other", "DRAIN")
		l.LeavePartitions("other")
		after(time.Minute)
		s.SetPartition("other", "UP")
		task := s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		s.SetPartition("other", "DRAIN")
		s.Cancel(last)
		after(time.Hour)
		if l.FreePartitions()["other"] {
			t.Error("it is free with a job")
		}
		s.Cancel(task)
		after(time.Hour)
		if !l.FreePartitions()["other"] {
			t.Error("it is not free without one")
		}
	})
}

// Questions about daemons, and about partitions, have a 200th of slurmrestd's time, and 300 ms after a rest. The first four lists count
// 50 ms each, as is expected of them.
func TestPartitionsAreAskedForWithinTheShareOfDaemons(t *testing.T) {
	const took = 200 * time.Millisecond
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		s.SetPartition("other", "DRAIN")
		slowly(s, took, "/partition/", "/partitions/")
		l.LeavePartitions("other")
		after(10 * time.Minute)
		share := int((300*time.Millisecond + 10*time.Minute/200) / took)
		calls := s.Counters().Calls
		if got := calls["GET partitions"] + calls["DELETE partition"]; got > share+4 || got < share-2 {
			t.Errorf("within ten minutes there were %v, want %d", calls, share)
		}
	})
}

func TestAPartitionThatSomebodyOpensWhileItsJobsAreLookedForIsNotFree(t *testing.T) {
	leavesOf(t, fake.Slurm2411, func(t *testing.T, s *fake.Slurm, l *Cache) {
		for range 100 {
			s.Submit(fake.Job{Partition: "main", NodeList: []string{"worker-0"}})
		}
		s.SetPartition("other", "DRAIN")
		slowly(s, 50*time.Millisecond, "/job/", "/jobs/state")
		l.LeavePartitions("other")
		after(time.Minute)
		s.SetPartition("other", "UP")
		s.Submit(fake.Job{Partition: "other", NodeList: []string{"worker-0"}})
		after(time.Hour)
		if l.FreePartitions()["other"] {
			t.Error("it is free with a job")
		}
	})
}

func TestANodeIsFreeWhenNoJobRunsThereOrNamesIt(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		s.Register(fake.Node{Name: "worker-1", CPUs: 8})
		running := s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		waiting := s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		l.LeaveNodes("worker-0", "worker-1")
		after(time.Minute)
		if free := l.FreeNodes(); len(free) > 0 {
			t.Errorf("%v are free although they take new jobs", free)
		}
		if err := s.Update("slurm", "worker-[0-1]", "DRAIN", "going"); err != nil {
			t.Fatal(err)
		}
		after(time.Minute)
		if free := l.FreeNodes(); free["worker-0"] || !free["worker-1"] {
			t.Errorf("%v are free while a job runs", free)
		}
		s.Finish(running)
		after(time.Minute)
		if free := l.FreeNodes(); free["worker-0"] {
			t.Errorf("%v are free while a job names one", free)
		}
		changes := l.hub.subscribe()
		defer changes.Close()
		s.Cancel(waiting)
		after(time.Minute)
		if free := l.FreeNodes(); !free["worker-0"] || !strings.Contains(taken(changes), ":"+Slurmctld) {
			t.Errorf("%v are free at last", free)
		}
	})
}
