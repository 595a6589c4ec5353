// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// aRequiredCheck has to pass on the machines of new workers.
const aRequiredCheck = `{metadata: {name: disk}, spec: {name: disk, slurmClusterRefName: demo, requiredBeforeJobs: true, runAfterCreation: false,
  k8sJobSpec: {jobContainer: {image: check, command: [/check]}}}}`

// requiredCheck is a check that is required of a cluster with three workers, one of which runs a job. Two more come, for each of which a
// job waits, and one of these goes again while it waits for its check.
func requiredCheck(w *world) {
	running := w.slurm.Submit(fake.Job{NodeList: []string{"worker-0"}, CPUs: 1, Duration: 3 * time.Minute})
	create[nebiusv1alpha1.ActiveCheck](w, aRequiredCheck)
	w.awaitRequired()
	grow := func(size int32) {
		change(w, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Worker.Size = size })
	}
	grow(5)
	for began := time.Now(); time.Since(began) < 15*time.Second; w.sleep(500 * time.Millisecond) {
		w.expectGate()
	}
	grow(4)
	for began := time.Now(); time.Since(began) < 4*time.Minute; w.sleep(500 * time.Millisecond) {
		w.expectGate()
	}
	w.expectUsersJob(running)
}

// awaitRequired waits until the workers that are made from then on need the check.
func (w *world) awaitRequired() {
	for began := time.Now(); time.Since(began) < patience; w.sleep(time.Second) {
		if set, there := get[slinkyv1beta1.NodeSet](w, "demo-worker"); there && slices.Equal(set.Spec.RequiredChecks, []string{"disk"}) {
			return
		}
	}
	w.fail("a check is required", "the NodeSet does not say so")
}

// expectGate checks that no node of a worker that needs the check takes jobs before the check has passed on its machine.
func (w *world) expectGate() {
	for _, pod := range w.sim.Objects(podKind) {
		if pod.GetAnnotations()[slinkyv1beta1.AnnotationRequiredChecks] == "" {
			continue
		}
		host, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		status, known := w.slurm.Node(slurmName(pod))
		if state := node.Parse(status.State); known && state.Drain().Or(state.Down()) == node.No && !w.passedOn(host) {
			w.fail("no job starts before a required check has passed", "%s takes jobs: %v", slurmName(pod), status.State)
		}
	}
}

// passedOn reports whether the required check has passed on a Kubernetes node.
func (w *world) passedOn(host string) bool {
	return slices.ContainsFunc(w.sim.Objects(jobKind), func(j *unstructured.Unstructured) bool {
		done, _, _ := unstructured.NestedInt64(j.Object, "status", "succeeded")
		return done > 0 && strings.HasPrefix(j.GetAnnotations()[slinkyv1beta1.AnnotationMachine], host+"/")
	})
}

// expectGateOpen checks that there are four workers in the end, and that all of them take jobs.
func (w *world) expectGateOpen() {
	workers := 0
	for _, pod := range w.sim.Objects(podKind) {
		if !isWorker(pod) {
			continue
		}
		workers++
		if status, _ := w.slurm.Node(slurmName(pod)); node.Parse(status.State).Drain() != node.No {
			w.fail("a worker takes jobs when its check has passed", "%s is %v: %s", slurmName(pod), status.State, status.Reason)
		}
	}
	if workers != 4 {
		w.fail("the cluster has its size", "there are %d workers", workers)
	}
}

// drainedAtFirst returns the reason with which the slurmd of a pod makes its record drained.
func drainedAtFirst(pod *unstructured.Unstructured) (reason string) {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, c := range containers {
		fields, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(fields, "args")
		reason += fake.DrainedIn(args)
	}
	return reason
}
