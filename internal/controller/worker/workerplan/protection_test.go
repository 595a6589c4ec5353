// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func protected(p *workerpod.Pod) { p.Protected = true }

// Whatever Slurm reports, a worker may be evicted only where it might as well be deleted, and not when it is about to be used.
func TestNoWorkerMayBeEvictedOnWhichAJobRunsOrMayStart(t *testing.T) {
	words := []string{"IDLE", "MIXED", "ALLOCATED", "DOWN", "UNKNOWN", "DRAIN", "UNDRAIN", "COMPLETING", "NOT_RESPONDING", "INVALID", "HIBERNATING", "MAINTENANCE"}
	rapid.Check(t, func(t *rapid.T) {
		w := workerplan.Worker{
			Now: noon,
			SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, JobsKnown: rapid.SampledFrom([]node.Answer{node.Unknown, node.Yes}).Draw(t, "known"), State: node.Parse(rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "state")), Reason: node.Reason{
				Text: rapid.SampledFrom([]string{"", "bad disk", cordonReason, drainReason, "slurm-operator: Pod is terminating"}).Draw(t, "reason"),
				At:   noon.Add(-time.Hour),
			}, Record: workerplan.Record{Started: noon.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "started")) * time.Hour)}},
			Wanted: workerplan.Wanted{Protection: workerpod.UntilDrained},
			Pod:    aPod(1),
			Host:   workerplan.Host{Name: "node-1", Cordoned: rapid.SampledFrom([]node.Answer{node.Unknown, node.No, node.Yes}).Draw(t, "cordoned")},
		}
		if w.JobsKnown == node.Yes && rapid.Bool().Draw(t, "suspended") {
			w.Jobs = []workerplan.Job{{ID: 812}}
		}
		for _, option := range []func(*workerpod.Pod){cordoned, scaledIn, unready, protected} {
			if rapid.Bool().Draw(t, "option") {
				option(&w.Pod)
			}
		}
		action := workerplan.Next(w)
		evictable := action.Marks.Protected == node.No
		if evictable && (w.State.Busy() != node.No || w.State.Drain() != node.Yes && w.State.Down() != node.Yes || w.JobsKnown != node.Yes || len(w.Jobs) > 0) {
			t.Errorf("%s may be evicted", w.State)
		}
		if evictable && (action.StateChange.Undrain || action.StateChange.Revive) {
			t.Errorf("%s may be evicted when it is used again", w.State)
		}
		if action.Deletion.Delete && !evictable {
			t.Errorf("%s is deleted, and may not be evicted", w.State)
		}
		if action.Marks.Protected == node.Unknown && (w.Pod.Protected || w.JobsKnown == node.Yes) {
			t.Errorf("of %s it is not decided whether it may be evicted", w.State)
		}
	})
}
