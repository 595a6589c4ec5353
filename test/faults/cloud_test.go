// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// notReadyTimeout is how long a Node may not be ready in scenarios with a cloud.
const notReadyTimeout = 5 * time.Minute

// cloud makes a machine anew whose Node was deleted. The surroundings let it act.
type cloud struct {
	// machines are the UIDs of the Nodes as they were seen last, and replaced how often one was made anew, by name.
	machines map[string]types.UID
	replaced map[string]int // guarded by the world's lock
}

// addCloud has machines replaced whose Nodes are deleted.
func (w *world) addCloud() {
	w.cloud = &cloud{machines: map[string]types.UID{}, replaced: map[string]int{}}
}

// replaces does what a cloud and the garbage collector of pods do: the pods of a machine that is gone end, and another one comes up.
func (w *world) replaces() {
	if w.cloud == nil {
		return
	}
	there := map[string]types.UID{}
	for _, n := range w.sim.Objects(nodeKind) {
		there[n.GetName()] = n.GetUID()
	}
	for name := range w.cloud.machines {
		if there[name] != "" {
			continue
		}
		for _, p := range w.sim.Objects(podKind) {
			if on, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName"); on == name && isWorker(p) {
				w.slurm.Lose(slurmName(p))
				w.recall(slurmName(p))
				w.sim.Remove(podKind, p.GetNamespace(), p.GetName())
			}
		}
		w.mu.Lock()
		delete(w.lostNodes, name)
		w.moved = true
		w.cloud.replaced[name]++
		w.mu.Unlock()
		w.rebooters[name] = newRebooter()
		w.schedulable(name)
	}
	w.cloud.machines = there
}

// machinesReplaced is a cloud that announces maintenance of two machines. One has a job, the worker of the other was drained by a person.
// A check suspects the third one meanwhile.
func machinesReplaced(w *world) {
	w.occupy(4*time.Minute, "w-0")
	w.drainBy("root", "w-1", "bad disk")
	w.conditionOf("node-w-0", health.DefaultMaintenanceType, corev1.ConditionTrue, "Test")
	w.conditionOf("node-w-1", health.DefaultMaintenanceType, corev1.ConditionTrue, "Test")
	w.drainBy("slurm", "w-2", "[hardware_problem] gpu_fallen_off: Xid 79")
	w.sleep(7 * time.Minute)
	if status, _ := w.slurm.Node("w-1"); w.undisturbed() && status.Reason != "bad disk" {
		w.fail("a person's drain stays on another machine", "w-1 is %v, %s", status.State, status.Reason)
	}
	if err := w.slurm.Update("root", "w-1", "RESUME", ""); err != nil && w.undisturbed() { // one that has lost its state has no drain
		w.fail("the surroundings work", "root resumes w-1: %v", err)
	}
	w.sleep(time.Minute)
}

// machineLost loses a machine for good. Later another one is lost to Kubernetes, and runs a job. There is time for
// a Kubernetes whose clock is ahead.
func machineLost(w *world) {
	w.occupy(25*time.Minute, "w-1")
	w.loses("w-0")
	w.sleep(18 * time.Minute)
	w.conditionOf("node-w-1", string(corev1.NodeReady), corev1.ConditionUnknown, "NodeStatusUnknown")
	w.sleep(20 * time.Minute)
}

// loses is the death of the machine of a worker, as Slurm and Kubernetes see it.
func (w *world) loses(name string) {
	w.mu.Lock()
	w.lostNodes["node-"+name], w.moved = true, true
	w.disturbed[name] = time.Now()
	w.mu.Unlock()
	w.slurm.Lose(name)
	w.conditionOf("node-"+name, string(corev1.NodeReady), corev1.ConditionUnknown, "NodeStatusUnknown")
}

// conditionOf sets a condition of a Kubernetes node.
func (w *world) conditionOf(name, kind string, status corev1.ConditionStatus, reason string) {
	w.edit(nodeKind, "", name, func(n *unstructured.Unstructured) {
		conditions, _, _ := unstructured.NestedSlice(n.Object, "status", "conditions")
		kept := []any{map[string]any{
			"type": kind, "status": string(status), "reason": reason, "lastTransitionTime": w.kubeNow().UTC().Format(time.RFC3339),
		}}
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] != kind {
				kept = append(kept, c)
			}
		}
		_ = unstructured.SetNestedSlice(n.Object, kept, "status", "conditions")
	})
	w.touch()
}

// expectReplaced checks that all three machines were replaced once, and that no drain is left.
func (w *world) expectReplaced() {
	w.expectMachines(map[string]int{"node-w-0": 1, "node-w-1": 1, "node-w-2": 1})
	w.expectBack()
}

// expectLostReplaced checks that the machines that Kubernetes lost were replaced, each once, one of them after its job.
func (w *world) expectLostReplaced() {
	w.expectMachines(map[string]int{"node-w-0": 1, "node-w-1": 1, "node-w-2": 0})
	w.expectBack()
}

// expectBack checks that all workers take jobs.
func (w *world) expectBack() {
	for _, name := range []string{"w-0", "w-1", "w-2"} {
		if status, _ := w.slurm.Node(name); w.undisturbed() && (status.Reason != "" || node.Parse(status.State).Down() != node.No) {
			w.fail("a worker comes back on another machine", "%s is %v, %s", name, status.State, status.Reason)
		}
	}
}

// expectMachines holds how often each machine was replaced. A Slurm that has lost its state may lack a drain for which one was.
func (w *world) expectMachines(want map[string]int) {
	for name, times := range want {
		if got := w.cloud.replaced[name]; got > times || got < times && w.undisturbed() {
			w.fail("each machine is replaced as often as is needed", "%s was replaced %d times, want %d", name, got, times)
		}
	}
}

// judgeReplacement checks that no Node is deleted with a job on it, nor for anything but a condition of the Node.
func (w *world) judgeReplacement(name string) func(call) {
	var running []string
	for _, p := range w.rebootable(name) {
		if w.runsJobs(p.Name) {
			running = append(running, p.Name)
		}
	}
	announced := false
	for _, n := range w.sim.Objects(nodeKind) {
		if n.GetName() == name {
			announced = says(n, health.DefaultMaintenanceType) || says(n, health.HardwareIssuesSuspected) || says(n, health.NodeNotReady)
		}
	}
	return applied(func(c call) {
		if len(running) > 0 || !announced {
			w.fail("invariant 1, jobs are not killed", "%s deletes Node %s, announced %v, with jobs on %v", c.label(), name, announced, running)
		}
	})
}
