// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
)

func TestWhatWorkersWithPinsWaitFor(t *testing.T) {
	const words = "0/3 nodes are available"
	waits := func(name, node string) plans.Pod { return plans.Pod{Name: name, Node: node, Unschedulable: true} }
	nodes := []plans.KubeNode{{Name: "a", Fit: plans.Fits}, {Name: "b", Fit: plans.Belongs}, {Name: "c", Fit: plans.Starts}}
	for _, tt := range []struct {
		name string
		pods []plans.Pod
		want string
	}{
		{"for nothing, where all are scheduled", []plans.Pod{{Name: "w-0", Node: "a", Scheduled: true}}, ""},
		{"for nothing any more, where it is being deleted", []plans.Pod{{Name: "w-0", Node: "a", Unschedulable: true, Terminating: true}}, ""},
		{"for their Kubernetes nodes, each for its reason", []plans.Pod{waits("w-0", "a"), waits("w-1", "b"), waits("w-2", "c")},
			"; w-0 waits for Kubernetes node a, to which it is pinned: it is cordoned" +
				"; w-1 waits for Kubernetes node b, to which it is pinned: it is not ready, or short of something" +
				"; w-2 waits for Kubernetes node c, to which it is pinned: there is no room for it"},
		{"for what the scheduler says, without a pin", []plans.Pod{waits("w-0", "")}, "; w-0 is not scheduled: " + words},
		{"for the same, where they are many", []plans.Pod{waits("w-0", ""), waits("w-1", ""), waits("w-2", ""), waits("w-3", ""), waits("w-4", "")},
			"; w-0 is not scheduled: " + words + "; w-1 is not scheduled: " + words + "; w-2 is not scheduled: " + words + "; and 2 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pods := make([]corev1.Pod, len(tt.pods))
			for i := range pods {
				pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: words}}
			}
			if got := unscheduled(pods, plans.Input{Pods: tt.pods, Nodes: nodes}); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	pods := []corev1.Pod{{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Message: strings.Repeat("x", 600)}}}}}
	if got := unscheduled(pods, plans.Input{Pods: []plans.Pod{waits("w-0", "")}}); len(got) != len("; w-0 is not scheduled: ")+512 {
		t.Errorf("a scheduler that says much is repeated with %d bytes", len(got))
	}
}
