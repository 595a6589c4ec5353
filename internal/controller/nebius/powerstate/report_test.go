// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstate

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// world returns a NodeSet of four nodes, of which nodes 0 and 1 are shown as running.
func world() facts {
	f := facts{
		state:    &nebiusv1alpha1.NodeSetPowerState{Spec: nebiusv1alpha1.NodeSetPowerStateSpec{NodeSetRef: "n", ActiveNodes: []int32{0, 1}}},
		set:      &nebiusv1alpha1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: nebiusv1alpha1.NodeSetSpec{EphemeralNodes: true}},
		composed: &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{Replicas: new(int32(4))}},
		asked:    true, nodes: map[int32]slurmNode{}, pods: map[int32]pod{},
	}
	f.state.Annotations = map[string]string{nebiusv1alpha1.AnnotationActiveNodes: "0,1"}
	for o := range int32(4) {
		f.says(o, "IDLE+CLOUD+POWERED_DOWN")
	}
	for o := range int32(2) {
		f.says(o, "IDLE+CLOUD")
		f.pods[o] = pod{name: "c-n-" + strconv.Itoa(int(o)), node: "n", phase: corev1.PodRunning, ready: true}
	}
	return f
}

func (f *facts) says(ordinal int32, state string) {
	f.nodes[ordinal] = slurmNode{name: "n-" + strconv.Itoa(int(ordinal)), known: state != "", state: node.Parse(strings.Split(state, "+"))}
}

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts)
		// want is what the status shows of nodes that are not ready, as "ordinal phase state: message", ready of all, and scaling of the
		// condition.
		want    []string
		ready   string
		scaling metav1.ConditionStatus
	}{
		"all nodes run": {func(*facts) {}, nil, "2 of 2 active nodes are ready", metav1.ConditionFalse},
		"a node powers up and has no pod yet": {func(f *facts) { f.says(2, "ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP") },
			[]string{"2 Pending CLOUD+NOT_RESPONDING+POWERING_UP: its pod is not made yet"}, "2 of 3 active nodes are ready", metav1.ConditionTrue},
		"a node powers up, and its pod is there, and slurmd not": {func(f *facts) {
			f.says(2, "IDLE+CLOUD+POWERING_UP")
			f.pods[2] = pod{name: "c-n-2", node: "n"}
		}, []string{"2 Pending CLOUD+POWERING_UP: Slurm waits for its slurmd"}, "2 of 3 active nodes are ready", metav1.ConditionTrue},
		"a node is powered down, and its pod goes": {func(f *facts) { f.says(1, "IDLE+CLOUD+POWERING_DOWN") },
			[]string{"1 Running CLOUD+POWERING_DOWN: its pod is being removed: Slurm has powered the node down, or will when its jobs have ended"}, "1 of 1 active nodes are ready", metav1.ConditionTrue},
		"a pod ends while Slurm wants the node again": {func(f *facts) {
			f.pods[1] = pod{name: "c-n-1", node: "n", phase: corev1.PodRunning, leaving: true}
		}, []string{"1 Running CLOUD: the pod of its last run still ends"}, "1 of 2 active nodes are ready", metav1.ConditionTrue},
		"a node is DOWN": {func(f *facts) { f.says(1, "DOWN+CLOUD") }, []string{"1 Running DOWN+CLOUD: Slurm has it as DOWN"}, "1 of 2 active nodes are ready", metav1.ConditionFalse},
		"a pod is not ready": {func(f *facts) { f.pods[1] = pod{name: "c-n-1", node: "n", phase: corev1.PodRunning} },
			[]string{"1 Running CLOUD: its pod is not ready"}, "1 of 2 active nodes are ready", metav1.ConditionFalse},
		"a node is asked for": {func(f *facts) { f.state.Spec.ActiveNodes = []int32{0, 1, 3} },
			[]string{"3 Pending CLOUD+POWERED_DOWN: Slurm is asked to power it up"}, "2 of 3 active nodes are ready", metav1.ConditionTrue},
		"a node is asked for that Slurm does not have": {func(f *facts) {
			f.state.Spec.ActiveNodes = []int32{0, 1, 3}
			f.says(3, "")
		}, []string{"3 Pending : Slurm has no record of this node yet and cannot power it up. The operator makes the record when another worker of the NodeSet has registered; before Slurm 25.11 this worker has to run once: raise initialNumberEphemeralNodes"},
			"2 of 3 active nodes are ready", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			f := world()
			c.change(&f)
			out := report(f.state, reconcile.Outcome[facts, *plan, struct{}]{Facts: f, Plan: decide(f), Now: time.Unix(1000, 0)})
			var got []string
			for _, key := range []string{"0", "1", "2", "3"} {
				if s, ok := f.state.Status.NodeStates[key]; ok && s.Message != "" {
					got = append(got, key+" "+s.Phase+" "+s.SlurmState+": "+s.Message)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("nodes (-want, +got):\n%s", diff)
			}
			if len(out.Parts) != 1 || out.Parts[0].Message != c.ready || len(out.Conditions) != 1 || out.Conditions[0].Status != c.scaling {
				t.Errorf("it says %+v", out)
			}
		})
	}
}

func TestTheTimeOfAPhaseIsKept(t *testing.T) {
	f := world()
	at := func(now int64) map[string]nebiusv1alpha1.NodePowerState {
		report(f.state, reconcile.Outcome[facts, *plan, struct{}]{Facts: f, Plan: decide(f), Now: time.Unix(now, 0)})
		return f.state.Status.NodeStates
	}
	first := at(1000)
	f.pods[1] = pod{name: "c-n-1", node: "n", phase: corev1.PodFailed}
	then := at(2000)
	if !then["0"].LastTransitionTime.Equal(first["0"].LastTransitionTime) || then["1"].LastTransitionTime.Unix() != 2000 {
		t.Errorf("the phases have the times %v and %v", then["0"].LastTransitionTime, then["1"].LastTransitionTime)
	}
}

func TestWhatWasSaidStandsUntilSlurmIsMissed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts)
		stands bool
	}{
		"the operator has started and Slurm has not answered yet": {func(*facts) {}, true},
		"the Controller says that Slurm does not answer":          {func(f *facts) { f.reachable = false }, false},
		"nothing was said before":                                 {func(f *facts) { f.state.Status.Conditions = nil }, false},
		"the spec has changed since":                              {func(f *facts) { f.state.Generation++ }, false},
		"Slurm has answered":                                      {func(f *facts) { f.asked = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := world()
			f.asked, f.reachable = false, true
			f.state.Status.Conditions = []metav1.Condition{{Type: nebiusv1alpha1.ConditionScalingInProgress, Status: metav1.ConditionFalse}}
			c.change(&f)
			if out := report(f.state, reconcile.Outcome[facts, *plan, struct{}]{Facts: f, Plan: decide(f)}); out.Stands != c.stands {
				t.Errorf("it says %+v", out)
			}
		})
	}
}

func TestTheStatusIsBounded(t *testing.T) {
	f := world()
	f.composed.Spec.Replicas = new(int32(3 * maxNodeStates))
	f.state.Spec.ActiveNodes = nil
	for o := range f.composed.Replicas() {
		f.says(o, "IDLE+CLOUD")
		f.pods[o] = pod{name: "p", node: "n", phase: corev1.PodRunning, ready: true}
	}
	last := f.composed.Replicas() - 1
	f.pods[last] = pod{name: "p", node: "n", phase: corev1.PodFailed}
	report(f.state, reconcile.Outcome[facts, *plan, struct{}]{Facts: f, Plan: decide(f)})
	if n := len(f.state.Status.NodeStates); n != maxNodeStates {
		t.Errorf("the status tells of %d nodes", n)
	}
	if f.state.Status.NodeStates[strconv.Itoa(int(last))].Phase != "Failed" {
		t.Error("the status leaves out the node that is not ready")
	}
}

// FuzzShown has a user edit the annotation.
func FuzzShown(f *testing.F) {
	f.Add("0,1,7")
	f.Add(",-1,99999999999,x")
	f.Fuzz(func(t *testing.T, text string) {
		state := &nebiusv1alpha1.NodeSetPowerState{}
		state.Annotations = map[string]string{nebiusv1alpha1.AnnotationActiveNodes: text}
		read := shown(state)
		state.Annotations[nebiusv1alpha1.AnnotationActiveNodes] = join(read)
		if diff := cmp.Diff(read, shown(state)); diff != "" {
			t.Errorf("written and read again (-want, +got):\n%s", diff)
		}
	})
}
