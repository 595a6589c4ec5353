// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

const threePowered = `replicas: 3, powerSaving: {initial: 3}`

// saving are scenarios in which Slurm powers workers down and up.
func saving() []scenario {
	return []scenario{
		{name: "power saving", nodeSet: threePowered, sparse: 2, act: func(w *world) {
			w.powerDown("w-0", "w-1", "w-2")
			w.sleep(3 * time.Minute)
			w.wakes(fake.Job{Nodes: 3, Duration: 2 * time.Minute})
			w.powerDown("w-1", "w-2")
			w.sleep(3 * time.Minute)
		}},
		{name: "power saving of workers that never ran", nodeSet: `replicas: 3, powerSaving: {initial: 0}`, sparse: 2, act: func(w *world) {
			w.powerDown("w-0")
			w.sleep(3 * time.Minute)
			w.wakes(fake.Job{Nodes: 3, Duration: 2 * time.Minute})
			w.powerDown("w-0", "w-1", "w-2")
			w.sleep(3 * time.Minute)
			change(w, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf = "Weight=7" })
			w.sleep(3 * time.Minute)
			w.powerDown("w-0")
			w.sleep(3 * time.Minute)
			w.wakes(fake.Job{Nodes: 3, Duration: 2 * time.Minute})
		}},
		{name: "power saving, and a worker that comes too late", nodeSet: threePowered, sparse: 2, act: func(w *world) {
			w.powerDown("w-2")
			w.sleep(3 * time.Minute)
			w.slurm.Submit(fake.Job{NodeList: []string{"w-2"}, Duration: 2 * time.Minute})
			w.slurm.Late("w-2")
			w.touch()
			w.sleep(5 * time.Minute)
		}},
		{name: "delete while workers are powered down", nodeSet: threePowered, anyEnd: true, sparse: 2, leaves: (*world).expectDrained, act: func(w *world) {
			w.powerDown("w-1", "w-2")
			w.sleep(3 * time.Minute)
			remove[slinkyv1beta1.NodeSet](w, "w")
			gone[slinkyv1beta1.NodeSet](w, "w")
			w.sleep(10 * time.Second)
		}},
	}
}

// wakes submits a job for nodes that are powered down. It has to find all of them where they are then.
func (w *world) wakes(job fake.Job) {
	id := w.slurm.Submit(job)
	w.touch()
	w.sleep(5 * time.Minute)
	status, _ := w.slurm.Job(id)
	w.mu.Lock()
	untouched := w.untouched
	w.mu.Unlock()
	if status.Stranded || untouched && !slices.Contains(status.State, "COMPLETED") { // somebody may have drained one of them
		w.fail("a job finds the nodes that it wakes", "job %d is %v, and it looks for nodes where they were before: %t", id, status.State, status.Stranded)
	}
}

// expectDrained checks that Slurm gives no job a node whose worker is no longer made.
func (w *world) expectDrained() {
	for _, name := range w.slurm.Names() {
		status, _ := w.slurm.Node(name)
		if state := node.Parse(status.State); state.Drain().Or(state.Down()) != node.Yes {
			w.fail("what is gone gets no jobs", "%s is %v", name, status.State)
		}
	}
}

// powerDown lets Slurm power down idle nodes that it has, as soon as slurmctld is there.
func (w *world) powerDown(names ...string) {
	for _, name := range names {
		for range 300 {
			if w.slurm.Update("slurm", name, "POWER_DOWN", "") == nil {
				break
			}
			w.sleep(time.Second)
		}
	}
	w.touch()
}

// powered returns how many workers of a NodeSet Slurm wants.
func (w *world) powered(n *slinkyv1beta1.NodeSet) (wanted int32) {
	for ordinal := range int(n.Replicas()) {
		status, known := w.slurm.Node(n.Hostname(ordinal))
		if state := node.Parse(status.State); !known || !state.Has(node.PoweredDown) {
			wanted++
		}
	}
	return wanted
}

// saves reports whether a worker's slurmd takes its own start for that of the machine.
func saves(pod *unstructured.Unstructured) bool {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	return slices.ContainsFunc(containers, func(c any) bool {
		fields, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(fields, "args")
		return slices.Contains(args, "-b")
	})
}
