// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"testing/synctest"
	"time"
)

// Slurm's times are by its clock, and spec.drainTimeout is by none: jobs have that time, and no more.
func TestDrainTimeoutIsTheSameByAnyClock(t *testing.T) {
	for _, skew := range append(skews(), fault{name: "the same clock"}) {
		t.Run(skew.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, skew.clocks)
				defer w.close()
				w.boot()
				w.cluster(threeWorkers + `, drainTimeout: 2m`)
				w.settle()
				w.occupy(time.Hour, "w-0", "w-1", "w-2")
				w.scale(2)
				w.sleep(110 * time.Second)
				if n := len(w.workers()); n != 3 {
					t.Errorf("%d workers are left 10 s before the end of drainTimeout", n)
				}
				w.sleep(40 * time.Second)
				if n := len(w.workers()); n != 2 {
					t.Errorf("%d workers are left 30 s after the end of drainTimeout", n)
				}
			})
		})
	}
}
