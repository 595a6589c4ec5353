// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// What one watch shows may be older than what another one does.

func TestWorkersThatWereOrphanedUnseenAreNotDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster(threeWorkers)
		w.settle()
		before := w.workers()
		w.sim.Hold("nodesets", "pods")
		remove[slinkyv1beta1.NodeSet](w, "w", client.PropagationPolicy(metav1.DeletePropagationOrphan))
		w.sleep(5 * time.Second) // the garbage collector has done its work
		w.sim.Expire("nodesets") // so that nobody sees it while it is to leave its workers behind
		w.sleep(20 * time.Second)
		w.sim.Release()
		gone[slinkyv1beta1.NodeSet](w, "w")
		create[slinkyv1beta1.NodeSet](w, nodeSet(threeWorkers))
		w.settle()
		w.expectGoal()
		if drains := w.slurmCalls("DRAIN"); drains > 0 {
			t.Errorf("%d drains", drains)
		}
		if after := w.workers(); !slices.Equal(before, after) {
			t.Errorf("the workers were %v and are %v", before, after)
		}
		for _, v := range w.violations {
			t.Error(v)
		}
	})
}

func TestANodeSetStaysForAWorkerThatIsNotInTheCacheYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster("replicas: 0")
		w.settle()
		w.sim.Hold("pods")
		w.scale(1)
		w.sleep(10 * time.Second)
		job := w.slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1, Duration: 3 * time.Minute})
		remove[slinkyv1beta1.NodeSet](w, "w")
		w.sleep(20 * time.Second)
		w.sim.Release()
		gone[slinkyv1beta1.NodeSet](w, "w")
		if status, _ := w.slurm.Job(job); !slices.Contains(status.State, "COMPLETED") {
			t.Errorf("the job is %v", status.State)
		}
		for _, v := range w.violations {
			t.Error(v)
		}
	})
}

// workers returns the names and UIDs of the worker pods.
func (w *world) workers() []string {
	var out []string
	for _, p := range w.sim.Objects(podKind) {
		if isWorker(p) {
			out = append(out, p.GetName()+" "+string(p.GetUID()))
		}
	}
	return out
}
