// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
)

func TestWhatWorkersWithPinsWaitFor(t *testing.T) {
	const words = "0/3 nodes are available"
	waits := func(name, node string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{slinkyv1beta1.AnnotationNode: node}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: words,
			}}},
		}
	}
	scheduled, leaving, verbose := waits("w-0", "a"), waits("w-0", "a"), waits("w-0", "")
	scheduled.Status.Conditions[0].Status, scheduled.Status.Conditions[0].Reason = corev1.ConditionTrue, ""
	leaving.DeletionTimestamp = &metav1.Time{}
	verbose.Status.Conditions[0].Message = strings.Repeat("x", 600)
	nodes := []nodesetplan.KubeNode{{Name: "a", Fit: nodesetplan.Fits}, {Name: "b", Fit: nodesetplan.Belongs}, {Name: "c", Fit: nodesetplan.Starts}}
	for _, tt := range []struct {
		name string
		pods []corev1.Pod
		want string
	}{
		{"for nothing, where all are scheduled", []corev1.Pod{scheduled}, ""},
		{"for nothing any more, where it is being deleted", []corev1.Pod{leaving}, ""},
		{"for their Kubernetes nodes, each for its reason", []corev1.Pod{waits("w-0", "a"), waits("w-1", "b"), waits("w-2", "c")},
			"; w-0 waits for Kubernetes node a, to which it is pinned: it is cordoned" +
				"; w-1 waits for Kubernetes node b, to which it is pinned: it is not ready, or is under memory, disk or PID pressure" +
				"; w-2 waits for Kubernetes node c, to which it is pinned: it has no room for the worker"},
		{"for what the scheduler says, without a pin", []corev1.Pod{waits("w-0", "")}, "; w-0 is not scheduled: " + words},
		{"for the same, where they are many", []corev1.Pod{waits("w-0", ""), waits("w-1", ""), waits("w-2", ""), waits("w-3", ""), waits("w-4", "")},
			"; w-0 is not scheduled: " + words + "; w-1 is not scheduled: " + words + "; w-2 is not scheduled: " + words + "; and 2 more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := unscheduled(tt.pods, nodes); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if got := unscheduled([]corev1.Pod{verbose}, nil); len(got) != len("; w-0 is not scheduled: ")+512 {
		t.Errorf("a scheduler that says much is repeated with %d bytes", len(got))
	}
}
