// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// A leader may be frozen, as by the migration of its machine, while something that it has sent is still under way. That arrives
// when another one has led for a while, and seen people change their minds.

// lateness returns how late a write arrives. The client of slurmrestd gives a call up after a minute.
func lateness() []time.Duration {
	return []time.Duration{300 * time.Millisecond, 3 * time.Second, 17 * time.Second, 50 * time.Second}
}

func TestWhatAFormerLeaderHasSentKillsNoJob(t *testing.T) {
	from := begin(t, threeWorkers)
	// play counts the dangerous writes, and has one of them arrive late.
	play := func(t *testing.T, nth int, late time.Duration) (dangerous int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(from.at)
			w := newWorld(t, clocks{})
			defer w.close()
			w.restore(from)
			w.boot()
			w.sleep(15 * time.Second)
			var count atomic.Int64
			w.mu.Lock()
			w.inject = func(c call) verdict {
				if c.dangerous() && int(count.Add(1)) == nth {
					return w.outlive(c, late)
				}
				return verdict{}
			}
			w.mu.Unlock()
			w.minds()
			w.settle()
			w.expectGoal()
			dangerous = int(count.Load())
			for _, v := range w.violations {
				t.Error(v)
			}
			if t.Failed() || *trace {
				for _, c := range w.calls {
					t.Log(c)
				}
			}
		})
		return dangerous
	}
	var all []int
	for i := range play(t, 0, 0) {
		all = append(all, i+1)
	}
	if len(all) < 10 {
		t.Fatalf("only %d writes could cost a job when they are late", len(all))
	}
	for i, late := range lateness() {
		for _, nth := range sampled(all, *every, i) {
			t.Run(fmt.Sprintf("number %d is %s late", nth, late), func(t *testing.T) {
				t.Parallel()
				play(t, nth, late)
			})
		}
	}
}

// dangerous reports whether a write lets jobs onto a node, lets a worker go, or leaves one without protection.
func (c call) dangerous() bool {
	protects := strings.Contains(string(c.body), `"`+slinkyv1beta1.LabelPodProtect+`":"true"`)
	switch {
	case c.to == "slurm":
		return slices.Contains(c.update().State, "UNDRAIN") || slices.Contains(c.update().State, "IDLE")
	case c.method == http.MethodDelete:
		return true
	case strings.HasSuffix(c.path, "/status"):
		return strings.Contains(string(c.body), `"`+slinkyv1beta1.LabelPodProtect+`":null`)
	}
	return c.method == http.MethodPatch && strings.HasPrefix(c.path, "pods/") && !protects
}

// outlive lets a write arrive late, and nothing else of its process. Another process leads from now on.
func (w *world) outlive(c call, late time.Duration) verdict {
	c.process.frozen.Store(true)
	w.after(0, w.boot)
	w.after(late+time.Second, func() {
		c.process.kill()
		w.replaced <- struct{}{}
	})
	return verdict{late: late, name: "late"}
}

// minds are changed: Kubernetes nodes are cordoned, uncordoned, and cordoned again for longer than a write is late; the same with
// replicas. All the time jobs wait for each of the nodes, and workers on which jobs run are evicted.
func (w *world) minds() {
	waiting := map[string]int64{}
	between := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); w.sleep(200 * time.Millisecond) {
			for name, pod := range w.runningWorkers() {
				if job, known := w.slurm.Job(waiting[name]); !known || slices.Contains(job.State, "COMPLETED") {
					waiting[name] = w.slurm.Submit(fake.Job{NodeList: []string{name}, CPUs: 1, Duration: 2 * time.Second})
				}
				if w.runsJobs(name) {
					w.evict(pod)
				}
			}
		}
	}
	w.cordonNodes(true)
	between(8 * time.Second)
	w.cordonNodes(false)
	between(6 * time.Second)
	w.scale(2)
	w.cordonNodes(true)
	between(time.Minute)
	w.scale(3)
	w.cordonNodes(false)
	between(10 * time.Second)
	for _, id := range waiting {
		w.slurm.Cancel(id)
	}
}
