// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// aSlurmCluster has two workers, accounting and a login pod.
const aSlurmCluster = `{metadata: {name: demo}, spec: {slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}},
  controller: {}, login: {size: 1}, rest: {enabled: true}, worker: {size: 2}}}}`

// resting are scenarios of clusters that are put to rest.
func resting() []scenario {
	return []scenario{
		{name: "maintenance", nodeSet: aSlurmCluster, sparse: 3, leaves: (*world).expectCluster, act: func(w *world) {
			w.occupy(3*time.Minute, "worker-0")
			waits := w.slurm.Submit(fake.Job{NodeList: []string{"worker-0"}, CPUs: 4, Duration: time.Minute})
			w.maintain(nebiusv1.MaintenanceDownscale)
			w.sleep(8 * time.Minute)
			w.expectStopped()
			w.expectJob(waits, "PENDING")
			w.maintain(nebiusv1.MaintenanceNone)
			w.sleep(4 * time.Minute)
			w.expectJob(waits, "COMPLETED")
		}},
		{name: "maintenance that is called off", nodeSet: aSlurmCluster, anyEnd: true, sparse: 3, leaves: (*world).expectCluster, act: func(w *world) {
			w.maintain(nebiusv1.MaintenanceDownscale)
			w.sleep(3 * time.Second)
			w.maintain(nebiusv1.MaintenanceNone)
		}},
	}
}

func (w *world) maintain(mode nebiusv1.MaintenanceMode) {
	change(w, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = mode })
}

// expectStopped checks that nothing runs of a cluster at rest. A fault may last longer than the rest.
func (w *world) expectStopped() {
	if !w.undisturbed() {
		return
	}
	c, _ := get[nebiusv1.SlurmCluster](w, "demo")
	for _, pod := range w.sim.Objects(podKind) {
		w.fail("at rest nothing runs", "Pod %s is there; %+v", pod.GetName(), c.Status.Conditions)
	}
}

// expectJob checks that Slurm still has a job, in this state. A fault may have made it lose its own.
func (w *world) expectJob(job int64, state string) {
	if status, ok := w.slurm.Job(job); w.undisturbed() && (!ok || !slices.Contains(status.State, state)) {
		w.fail("the queue is kept", "the job is %v", status.State)
	}
}

func (w *world) undisturbed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.untouched
}

// expectCluster checks that the SlurmCluster runs.
func (w *world) expectCluster() {
	c, _ := get[nebiusv1.SlurmCluster](w, "demo")
	workers := 0
	for _, pod := range w.sim.Objects(podKind) {
		if isWorker(pod) && available(pod) {
			workers++
		}
	}
	if c.Status.Phase != nebiusv1.PhaseAvailable || workers != 2 {
		w.fail("the cluster comes back", "%d workers of 2 are good; %+v", workers, c)
	}
}

// stopsAfter names what has to be gone, as the beginning of the names of pods, before a StatefulSet is scaled to zero.
func stopsAfter(statefulSet string) string {
	return map[string]string{"demo-controller": "demo-worker-", "demo-accounting": "demo-controller-", "demo-database": "demo-accounting-"}[statefulSet]
}

// judgeStop checks that Slurm answers as long as there are workers, and that slurmdbd and its database outlive what needs them.
func (w *world) judgeStop(name string) func(call) {
	replicas := func() int64 {
		for _, s := range w.sim.Objects(statefulSetKind) {
			if s.GetName() == name {
				return number(s, "spec", "replicas")
			}
		}
		return 0
	}
	before := replicas()
	return applied(func(c call) {
		if before == 0 || replicas() > 0 || stopsAfter(name) == "" {
			return
		}
		for _, pod := range w.sim.Objects(podKind) {
			if strings.HasPrefix(pod.GetName(), stopsAfter(name)) {
				w.fail("a cluster stops in order", "%s, while Pod %s is there", c.label(), pod.GetName())
			}
		}
	})
}

// scaleDown removes the pods of a StatefulSet beyond its number, and lets slurmctld stop and start with its own.
func (w *world) scaleDown(s *unstructured.Unstructured) {
	n := number(s, "spec", "replicas")
	for _, pod := range w.sim.Objects(podKind) {
		if owners := pod.GetOwnerReferences(); n == 0 && len(owners) == 1 && owners[0].UID == s.GetUID() {
			w.sim.Remove(podKind, pod.GetNamespace(), pod.GetName())
		}
	}
	cluster, slurmctld := strings.CutSuffix(s.GetName(), "-controller")
	switch asleep := w.asleep[cluster]; {
	case !slurmctld || asleep == (n == 0):
	case n == 0:
		w.slurmOf(cluster).Stop()
	default:
		w.slurmOf(cluster).Start(true)
	}
	if slurmctld {
		w.asleep[cluster] = n == 0
	}
}
