// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// started has the kubelet report since when the container of slurmctld runs.
func (w *world) started(at time.Time) {
	w.edit(podKind, namespace, "demo-controller-0", func(p *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(p.Object, []any{map[string]any{
			"name": "slurmctld", "image": "slurmctld", "imageID": "", "ready": true, "restartCount": int64(0),
			"state": map[string]any{"running": map[string]any{"startedAt": at.UTC().Format(time.RFC3339)}},
		}}, "status", "containerStatuses")
	})
}

// Jobs may run on a worker that the operator never saw in Slurm: it may have been away when it registered and slurmctld lost its state.
func TestANodeSetOfWhichNoWorkerEverRegisteredGoes(t *testing.T) {
	for name, test := range map[string]struct {
		restarted bool
		goes      bool
	}{
		"the NodeSet goes when slurmctld has run since before it was made": {false, true},
		"the NodeSet stays when slurmctld has started since it was made":   {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, clocks{})
				defer w.close()
				w.registersAs = map[string]string{"w-0": "", "w-1": "", "w-2": ""}
				w.boot()
				create[slinkyv1beta1.Controller](w, `{metadata: {name: demo}, spec: {inplaceReconfigure: true}}`) // a NodeSet changes slurm.conf
				create[slinkyv1beta1.RestApi](w, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
				w.settle()
				w.started(time.Now())
				w.sleep(2 * time.Minute)
				create[slinkyv1beta1.NodeSet](w, nodeSet(threeWorkers))
				w.sleep(10 * time.Minute)
				before := w.workers()
				if test.restarted {
					w.started(time.Now())
				}
				w.crash()
				w.sleep(10 * time.Minute)
				if after := w.workers(); len(after) != 3 || after[0] != before[0] || after[2] != before[2] {
					t.Errorf("workers are made anew in a loop: %v became %v", before, after)
				}
				remove[slinkyv1beta1.NodeSet](w, "w")
				w.sleep(10 * time.Minute)
				if _, there := get[slinkyv1beta1.NodeSet](w, "w"); there == test.goes || (len(w.workers()) == 0) != test.goes {
					t.Errorf("the NodeSet is there: %t, with workers %v", there, w.workers())
				}
			})
		})
	}
}

func TestAWorkerRegistersByAnotherNameOnThePodNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.registersAs = map[string]string{"w-1": "trainer"}
		w.boot()
		w.cluster(threeWorkers)
		w.settle()
		job := w.slurm.Submit(fake.Job{NodeList: []string{"trainer"}, CPUs: 1})
		before := w.workers()
		w.sleep(10 * time.Minute)
		w.crash()
		w.scale(0)
		w.sleep(10 * time.Minute)
		if after := w.workers(); len(after) != 1 || after[0] != before[1] {
			t.Errorf("of %v there are %v", before, after)
		}
		if got, _ := w.slurm.Job(job); !slices.Contains(got.State, "RUNNING") {
			t.Errorf("its job is %s", got.State)
		}
		p, _ := get[corev1.Pod](w, "w-1")
		const want = "slurmd has registered as Slurm node trainer, but the operator expects w-1"
		if c := workerpod.Condition(p, slinkyv1beta1.PodConditionNeedsAttention); c == nil || c.Reason != slinkyv1beta1.ReasonNodeNameMismatch || c.Message[:len(want)] != want {
			t.Errorf("the pod says %+v", c)
		}
	})
}
