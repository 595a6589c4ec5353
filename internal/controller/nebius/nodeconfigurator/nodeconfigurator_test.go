// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeconfigurator

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

func TestReport(t *testing.T) {
	set := func(observed int64, desired, updated, available int32) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: appsv1.DaemonSetStatus{
			ObservedGeneration: observed, DesiredNumberScheduled: desired, UpdatedNumberScheduled: updated, NumberAvailable: available,
		}}
	}
	for name, tt := range map[string]struct {
		set      *appsv1.DaemonSet
		problems problem.List
		message  string
		status   string
		reason   string
	}{
		"the DaemonSet is not made yet":                   {nil, nil, "the DaemonSet is not created yet", "updating", "RollingOut"},
		"the controller of the DaemonSet has not seen it": {set(1, 2, 2, 2), nil, "the DaemonSet has a new spec", "updating", "RollingOut"},
		"pods are replaced":                               {set(2, 3, 1, 3), nil, "rolled out on 1 of 3 nodes", "updating", "RollingOut"},
		"pods start":                                      {set(2, 3, 3, 2), nil, "rolled out on 2 of 3 nodes", "updating", "PodsNotReady"},
		"all pods run":                                    {set(2, 3, 3, 3), nil, "rolled out on 3 of 3 nodes", "succeeded", "Available"},
		"there are no nodes":                              {set(2, 0, 0, 0), nil, "rolled out on 0 of 0 nodes", "succeeded", "Available"},
		"the spec has a mistake": {
			set(2, 3, 3, 3), problem.List{problem.Errorf("spec", "InvalidSpec", "nothing is enabled")}, "rolled out on 3 of 3 nodes", "failed", "InvalidSpec",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var n nebiusv1alpha1.NodeConfigurator
			plan := &reconcile.Plan{}
			plan.Problems = tt.problems
			got := report(&n, reconcile.Outcome[facts, *reconcile.Plan, seen]{Plan: plan, Seen: seen{tt.set}})
			if part := got.Parts[0]; part.Message != tt.message || part.Ready != (part.Reason == "Available") {
				t.Errorf("the part is %+v, want %q", part, tt.message)
			}
			if n.Status.UpdateStatus != tt.status || n.Status.Reason != tt.reason {
				t.Errorf("the status is %s (%s), want %s (%s)", n.Status.UpdateStatus, n.Status.Reason, tt.status, tt.reason)
			}
		})
	}
}
