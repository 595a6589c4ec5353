// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestJobsAreLetOntoANodeAfterThePodSaysSo(t *testing.T) {
	undrained := nodeset.Worker{
		Now: noon, Asked: noon, Known: node.Yes, JobsKnown: node.Yes, Protection: nodeset.UntilDrained, Pod: aPod(1),
		State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)}, Host: nodeset.Host{Cordoned: node.No},
	}
	undrained.Pod.ReadySince = noon.Add(-time.Hour)
	for name, test := range map[string]struct {
		change            func(w *nodeset.Worker)
		undrain, announce bool
	}{
		"nothing has been said":                 {func(*nodeset.Worker) {}, true, true},
		"it has been said just now":             {func(w *nodeset.Worker) { w.Announced = noon.Add(-nodeset.Announced / 2) }, true, false},
		"it has been said too long ago":         {func(w *nodeset.Worker) { w.Announced = noon.Add(-nodeset.Announced) }, true, true},
		"the mark of the cordon goes first":     {func(w *nodeset.Worker) { w.NodeMarked = true }, false, true},
		"the Kubernetes node is still cordoned": {func(w *nodeset.Worker) { w.Host.Cordoned = node.Yes }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := undrained
			test.change(&w)
			if action := nodeset.Next(w); action.Undrain != test.undrain || action.Announce != test.announce {
				t.Errorf("undrain %t, announce %t", action.Undrain, action.Announce)
			}
		})
	}
}

func TestNoWorkerGoesWhileJobsMayBeLetOntoItsNode(t *testing.T) {
	drained := nodeset.Worker{
		Now: noon, Asked: noon, Known: node.Yes, JobsKnown: node.Yes, Protection: nodeset.UntilDrained, Pod: aPod(1), Lost: node.No,
		State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: drainReason, At: noon.Add(-time.Hour)},
		Host: nodeset.Host{Cordoned: node.Yes}, OpeningUntil: noon.Add(time.Second),
	}
	drained.Pod.ReadySince = noon.Add(-time.Hour)
	shielded(&drained.Pod)
	if action := nodeset.Next(drained); action.Protected != node.Unknown || !action.Again.Equal(drained.OpeningUntil) {
		t.Errorf("a cordoned worker: protected %v, again at %s", action.Protected, action.Again)
	}
	scaledIn(&drained.Pod)
	if action := nodeset.Next(drained); action.Delete || !action.Again.Equal(drained.OpeningUntil) {
		t.Errorf("a retired worker is deleted, or looked at again at %s", action.Again)
	}
	drained.Now = drained.OpeningUntil
	if action := nodeset.Next(drained); !action.Delete || action.Protected != node.No {
		t.Errorf("in the end it is not deleted: %+v", action)
	}
}

func FuzzParseOpening(f *testing.F) {
	f.Add("2026-11-22T10:00:00.5Z 8fa91c")
	f.Add("")
	f.Add("true")
	f.Fuzz(func(t *testing.T, text string) {
		o := nodeset.ParseOpening(text)
		if again := nodeset.ParseOpening(o.String()); !again.At.Equal(o.At) || again.By != o.By && !o.At.IsZero() {
			t.Errorf("%q is %v, and that is %v", text, o, again)
		}
	})
}
