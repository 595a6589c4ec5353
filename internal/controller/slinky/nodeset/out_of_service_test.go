// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func outWorker(hostname, reason string, since time.Time) corev1.Pod {
	p := corev1.Pod{Spec: corev1.PodSpec{Hostname: hostname}}
	p.Labels = map[string]string{slinkyv1beta1.LabelCluster: "demo"}
	if reason != "" {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: slinkyv1beta1.PodConditionOutOfService, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(since),
		}}
	}
	return p
}

func TestWorkersOutOfServiceAreToldByReason(t *testing.T) {
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	got := outOfService([]corev1.Pod{
		outWorker("w-0", "Maintenance", late), outWorker("w-1", "", late), outWorker("w-2", "Maintenance", early), outWorker("w-3", "FailedCheck", time.Time{}),
	})
	since := metav1.NewTime(early)
	want := []slinkyv1beta1.NodeSetOutOfService{
		{Reason: "FailedCheck", Count: 1, Nodes: "w-3"},
		{Reason: "Maintenance", Count: 2, Nodes: "w-[0,2]", Since: &since},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

func TestTheListOfWorkersOutOfServiceIsBounded(t *testing.T) {
	var pods []corev1.Pod
	for i := range 3000 {
		pods = append(pods, outWorker(fmt.Sprintf("w-%d", 2*i), "Cordoned", time.Unix(1000, 0)))
	}
	got := outOfService(pods)
	if len(got) != 1 || got[0].Count != 3000 || len(got[0].Nodes) != maxOutOfServiceNodes || !strings.HasSuffix(got[0].Nodes, "...") {
		t.Errorf("%d groups, %d nodes in %d bytes: %.40s", len(got), got[0].Count, len(got[0].Nodes), got[0].Nodes)
	}
}
