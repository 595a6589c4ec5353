// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"
)

var record = flag.Bool("faults.record", false, "write the objects of this version to testdata/previous.json, as those that the next one finds")

// previous is a cluster at rest as another version of the operator left it.
const previous = "testdata/previous.json"

// recorded is a beginning in a file.
type recorded struct {
	Seconds  int               `json:"seconds"`
	Comments map[string]string `json:"comments"`
	Dump     kubesim.Dump      `json:"dump"`
}

// TestAnotherVersionLeavesWorkersAlone starts this version of the operator on what a previous one stored: no worker is
// deleted for that, and everything continues from there.
func TestAnotherVersionLeavesWorkersAlone(t *testing.T) {
	if *record {
		write(t)
	}
	text, err := os.ReadFile(previous)
	if err != nil {
		t.Fatal(err)
	}
	var was recorded
	if err := json.Unmarshal(text, &was); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Duration(was.Seconds) * time.Second)
		w := newWorld(t, clocks{})
		defer w.close()
		w.restore(beginning{dump: was.Dump, comments: was.Comments})
		before := w.workers()
		w.boot()
		w.settle()
		w.expectGoal()
		if after := w.workers(); !slices.Equal(before, after) {
			t.Errorf("the workers were %v and are %v", before, after)
		}
		if drains := w.slurmCalls("DRAIN"); drains > 0 {
			t.Errorf("%d drains", drains)
		}
		w.scale(4)
		w.settle()
		w.expectGoal()
		w.reconcileAgain(3)
		for _, v := range w.violations {
			t.Error(v)
		}
	})
}

// write makes the file. The keys in it belong to no cluster.
func write(t *testing.T) {
	t.Helper()
	var out recorded
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster(threeWorkers)
		w.settle()
		w.rotate()
		w.settle()
		for _, obj := range w.sim.All() {
			if obj.GetKind() == "Event" { // nobody reads them
				w.sim.Remove(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
			}
		}
		from := w.beginning()
		out = recorded{Seconds: int(from.at/time.Second) + 1, Comments: from.comments, Dump: from.dump}
	})
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(previous, append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}
