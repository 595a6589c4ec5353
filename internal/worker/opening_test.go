// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/worker"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestJobsAreLetOntoANodeAfterThePodSaysSo(t *testing.T) {
	undrained := worker.Worker{
		Now: noon, Asked: noon, Known: node.Yes, JobsKnown: node.Yes, Protection: workerpod.UntilDrained, Pod: aPod(1),
		State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)}, Host: worker.Host{Cordoned: node.No},
	}
	undrained.Pod.ReadySince = noon.Add(-time.Hour)
	for name, test := range map[string]struct {
		change            func(w *worker.Worker)
		undrain, announce bool
	}{
		"nothing has been said":                 {func(*worker.Worker) {}, true, true},
		"it has been said just now":             {func(w *worker.Worker) { w.Announced = noon.Add(-worker.AnnouncementTimeout / 2) }, true, false},
		"it has been said too long ago":         {func(w *worker.Worker) { w.Announced = noon.Add(-worker.AnnouncementTimeout) }, true, true},
		"the mark of the cordon goes first":     {func(w *worker.Worker) { w.NodeMarked = true }, false, true},
		"the Kubernetes node is still cordoned": {func(w *worker.Worker) { w.Host.Cordoned = node.Yes }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := undrained
			test.change(&w)
			if action := worker.Next(w); action.Undrain != test.undrain || action.Announce != test.announce {
				t.Errorf("undrain %t, announce %t", action.Undrain, action.Announce)
			}
		})
	}
}

func TestNoWorkerGoesWhileJobsMayBeLetOntoItsNode(t *testing.T) {
	drained := worker.Worker{
		Now: noon, Asked: noon, Known: node.Yes, JobsKnown: node.Yes, Protection: workerpod.UntilDrained, Pod: aPod(1), Lost: node.No,
		State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)},
		Host: worker.Host{Cordoned: node.Yes}, OpeningUntil: noon.Add(time.Second),
	}
	drained.Pod.ReadySince = noon.Add(-time.Hour)
	protected(&drained.Pod)
	if action := worker.Next(drained); action.Protected != node.Unknown || !action.Again.Equal(drained.OpeningUntil) {
		t.Errorf("a cordoned worker: protected %v, again at %s", action.Protected, action.Again)
	}
	scaledIn(&drained.Pod)
	if action := worker.Next(drained); action.Delete || !action.Again.Equal(drained.OpeningUntil) {
		t.Errorf("a retired worker is deleted, or looked at again at %s", action.Again)
	}
	drained.Now = drained.OpeningUntil
	if action := worker.Next(drained); !action.Delete || action.Protected != node.No {
		t.Errorf("in the end it is not deleted: %+v", action)
	}
}

func FuzzParseOpening(f *testing.F) {
	f.Add("2026-11-22T10:00:00.5Z 8fa91c")
	f.Add("")
	f.Add("true")
	f.Fuzz(func(t *testing.T, text string) {
		o := worker.ParseOpening(text)
		if again := worker.ParseOpening(o.String()); !again.At.Equal(o.At) || again.By != o.By && !o.At.IsZero() {
			t.Errorf("%q is %v, and that is %v", text, o, again)
		}
	})
}
