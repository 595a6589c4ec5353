// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// maxNodeStates is how many nodes the status shows: each takes some 150 bytes, and an object has at most 1.5 MB.
const maxNodeStates = 1000

func report(state *nebiusv1alpha1.NodeSetPowerState, o reconcile.Outcome[facts, *plan, struct{}]) reconcile.Report {
	f, p := o.Facts, o.Plan
	state.Status.ActiveCount = int32(min(len(state.Spec.ActiveNodes), 1<<31-1))
	var out reconcile.Report
	if f.set == nil || !f.set.Spec.EphemeralNodes {
		state.Status.NodeStates = nil
		out.Drop = []string{nebiusv1alpha1.ConditionScalingInProgress}
		return out
	}
	said := meta.FindStatusCondition(state.Status.Conditions, nebiusv1alpha1.ConditionScalingInProgress)
	if !p.asked && f.reachable && said != nil && said.ObservedGeneration == state.Generation {
		out.Stands = true
		return out
	}
	if !p.asked {
		out.SetCondition(nebiusv1alpha1.ConditionScalingInProgress, metav1.ConditionUnknown, kube.ReasonWaiting, "Slurm has not said which nodes it wants")
		out.Parts = []kube.Part{{Name: "nodes", Reason: kube.ReasonWaiting, Message: "wait for Slurm to say which of them it wants"}}
		return out
	}
	nodes := f.messages(p)
	state.Status.NodeStates = nodes.states(state.Status.NodeStates, o.Now)
	out.Parts = []kube.Part{nodes.part()}
	if moving := nodes.moving(); moving > 0 {
		out.SetCondition(nebiusv1alpha1.ConditionScalingInProgress, metav1.ConditionTrue, nebiusv1alpha1.ReasonPowerChanges, fmt.Sprintf("%d nodes are powered up or down", moving))
	} else {
		out.SetCondition(nebiusv1alpha1.ConditionScalingInProgress, metav1.ConditionFalse, kube.ReasonReconciled, "no node is powered up or down")
	}
	return out
}

// words are what the status shows of the nodes, by ordinal.
type words map[int32]word

// word is what the status shows of one node.
type word struct {
	nebiusv1alpha1.NodePowerState
	// active reports whether the node is to run, moving whether it is powered up or down.
	active, moving bool
}

// messages returns what there is to show of each node that is to run, has a pod, or has a request.
func (f *facts) messages(p *plan) words {
	out := words{}
	for ordinal, n := range f.nodes {
		active := has(p.nodes.Active, ordinal)
		worker, exists := f.pods[ordinal]
		message, moving := f.waits(p, ordinal, active)
		if has(p.nodes.Beyond, ordinal) || !active && !exists && message == "" {
			continue
		}
		w := word{active: active, moving: moving}
		w.Phase, w.PodName, w.Message = string(corev1.PodPending), worker.name, message
		if exists {
			w.Phase = cmp.Or(string(worker.phase), string(corev1.PodPending))
		}
		if n.known {
			w.SlurmState = n.state.Power()
		}
		out[ordinal] = w
	}
	return out
}

// has reports whether ordinals, which are in order, have this one.
func has(ordinals []int32, ordinal int32) bool {
	_, found := slices.BinarySearch(ordinals, ordinal)
	return found
}

// waits returns what a node waits for, empty for nothing, and whether it is powered up or down.
func (f *facts) waits(p *plan, ordinal int32, active bool) (message string, moving bool) {
	n, worker := f.nodes[ordinal], f.pods[ordinal]
	switch {
	case has(p.nodes.Absent, ordinal):
		return "Slurm has no record of this node yet and cannot power it up. The operator makes the record when another worker of the NodeSet has registered; before Slurm 25.11 this worker has to run once: raise initialNumberEphemeralNodes", false
	case has(p.nodes.Held, ordinal):
		return "somebody has drained the node or set it DOWN, and powering it down would undo that; undrain it first", false
	case has(p.nodes.Up, ordinal):
		return "Slurm is asked to power it up", true
	case has(p.nodes.Down, ordinal):
		return "Slurm is asked to power it down", true
	case !active && worker.name != "":
		return "its pod is being removed: Slurm has powered the node down, or will when its jobs have ended", true
	case !active:
		return "", false
	case worker.name == "":
		return "its pod is not made yet", true
	case worker.leaving:
		return "the pod of its last run still ends", true
	case !n.known:
		return "Slurm does not list it yet", true
	case n.state.Has(node.PoweringUp):
		return "Slurm waits for its slurmd", true
	case n.state.Down() == node.Yes:
		return "Slurm has it as DOWN", false
	case !worker.ready:
		return "its pod is not ready", false
	}
	return "", false
}

// states returns the status of the nodes. A phase that has not changed keeps its time.
func (w words) states(before map[string]nebiusv1alpha1.NodePowerState, now time.Time) map[string]nebiusv1alpha1.NodePowerState {
	ordinals := slices.SortedFunc(maps.Keys(w), func(a, b int32) int {
		return cmp.Or(boolean(w[a].Message == "")-boolean(w[b].Message == ""), cmp.Compare(a, b))
	})
	out := map[string]nebiusv1alpha1.NodePowerState{}
	for _, ordinal := range ordinals[:min(len(ordinals), maxNodeStates)] {
		key := strconv.Itoa(int(ordinal))
		s := w[ordinal].NodePowerState
		was := before[key]
		s.LastTransitionTime = was.LastTransitionTime
		if was.Phase != s.Phase || was.LastTransitionTime == nil {
			s.LastTransitionTime = new(metav1.NewTime(now.Truncate(time.Second)))
		}
		out[key] = s
	}
	return out
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// part reports whether all nodes that are to run do.
func (w words) part() kube.Part {
	active, ready := 0, 0
	for _, one := range w {
		if one.active {
			active++
			ready += boolean(one.Message == "")
		}
	}
	return kube.Part{
		Name: "nodes", Ready: ready == active, Reason: kube.ReasonPodsNotReady, Message: fmt.Sprintf("%d of %d active nodes are ready", ready, active),
	}
}

// moving returns how many nodes are powered up or down.
func (w words) moving() (n int) {
	for _, one := range w {
		n += boolean(one.moving)
	}
	return n
}
