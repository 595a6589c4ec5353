// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestJobsAreLetOntoANodeAfterThePodSaysSo(t *testing.T) {
	undrained := workerplan.Worker{
		Now:       noon,
		SlurmView: workerplan.SlurmView{SnapshotTime: noon, Registered: node.Yes, JobsKnown: node.Yes, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)}},
		Wanted:    workerplan.Wanted{Protection: workerpod.UntilDrained},
		Pod:       aPod(1),
		Host:      workerplan.Host{Cordoned: node.No},
	}
	undrained.Pod.ReadySince = noon.Add(-time.Hour)
	for name, test := range map[string]struct {
		change            func(w *workerplan.Worker)
		undrain, announce bool
	}{
		"the pod has made no announcement":           {func(*workerplan.Worker) {}, true, true},
		"the pod has just made its announcement":     {func(w *workerplan.Worker) { w.Announced = noon.Add(-workerplan.AnnouncementTimeout / 2) }, true, false},
		"the pod made its announcement too long ago": {func(w *workerplan.Worker) { w.Announced = noon.Add(-workerplan.AnnouncementTimeout) }, true, true},
		"the mark of the cordon goes first":          {func(w *workerplan.Worker) { w.NodeMarked = true }, false, true},
		"the Kubernetes node is still cordoned":      {func(w *workerplan.Worker) { w.Host.Cordoned = node.Yes }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := undrained
			test.change(&w)
			if action := workerplan.Next(w); action.StateChange.Undrain != test.undrain || action.Announce != test.announce {
				t.Errorf("undrain %t, announce %t", action.StateChange.Undrain, action.Announce)
			}
		})
	}
}

func TestNoWorkerGoesWhileJobsMayBeLetOntoItsNode(t *testing.T) {
	drained := workerplan.Worker{
		Now:       noon,
		SlurmView: workerplan.SlurmView{SnapshotTime: noon, Registered: node.Yes, JobsKnown: node.Yes, SlurmStateLost: node.No, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)}},
		Wanted:    workerplan.Wanted{Protection: workerpod.UntilDrained},
		Pod:       aPod(1),
		Host:      workerplan.Host{Cordoned: node.Yes},
		Writes:    workerplan.Writes{OpeningUntil: noon.Add(time.Second)},
	}
	drained.Pod.ReadySince = noon.Add(-time.Hour)
	protected(&drained.Pod)
	if action := workerplan.Next(drained); action.Marks.Protected != node.Unknown || !action.Again.Equal(drained.OpeningUntil) {
		t.Errorf("a cordoned worker: protected %v, again at %s", action.Marks.Protected, action.Again)
	}
	scaledIn(&drained.Pod)
	if action := workerplan.Next(drained); action.Deletion.Delete || !action.Again.Equal(drained.OpeningUntil) {
		t.Errorf("a retired worker is deleted, or looked at again at %s", action.Again)
	}
	drained.Now = drained.OpeningUntil
	if action := workerplan.Next(drained); !action.Deletion.Delete || action.Marks.Protected != node.No {
		t.Errorf("in the end it is not deleted: %+v", action)
	}
}

func FuzzParseOpening(f *testing.F) {
	f.Add("2026-11-22T10:00:00.5Z 8fa91c")
	f.Add("")
	f.Add("true")
	f.Fuzz(func(t *testing.T, text string) {
		o := workerpod.ParseOpening(text)
		if again := workerpod.ParseOpening(o.String()); !again.At.Equal(o.At) || again.By != o.By && !o.At.IsZero() {
			t.Errorf("%q is %v, and that is %v", text, o, again)
		}
	})
}
