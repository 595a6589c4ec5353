// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestManyWorkers takes 260 workers through their life: what works for three may stall, or cost a call for each, where there
// are more than fit into one step of anything. Other operators have stalled from 250 on.
func TestManyWorkers(t *testing.T) {
	const workers = 260
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster(fmt.Sprintf(`replicas: %d, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 100}}`, workers))
		w.settle()
		w.expectGoal()
		if n := len(w.slurm.Names()); n != workers {
			t.Errorf("%d of %d workers have registered", n, workers)
		}

		w.calls = nil
		w.cordon("true")
		w.sleep(30 * time.Second)
		if drains := w.slurmCalls("DRAIN"); drains > 10 {
			t.Errorf("draining all took %d calls", drains)
		}
		w.cordon("")
		w.settle()
		if undrains := w.slurmCalls("UNDRAIN"); undrains > 10 {
			t.Errorf("undraining all took %d calls", undrains)
		}

		w.scale(2)
		w.settle()
		w.expectGoal()
		for _, v := range w.violations {
			t.Error(v)
		}
	})
}

// slurmCalls counts the writes to Slurm that ask for a state.
func (w *world) slurmCalls(state string) int {
	n := 0
	for _, c := range w.calls {
		if u := c.update(); c.to == "slurm" && len(u.State) == 1 && u.State[0] == state {
			n++
		}
	}
	return n
}
