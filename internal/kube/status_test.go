// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestAStatusIsWrittenOnceAndAtRestNotAtAll(t *testing.T) {
	e := newEngine(t)
	e.apply(e.deployment())
	before := e.live(e.deployment()).(*appsv1.Deployment)
	after := before.DeepCopy()
	after.Status.Replicas = 3
	after.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Ready", Status: corev1.ConditionTrue}, {Type: "Old", Status: corev1.ConditionTrue}}
	after.Spec.MinReadySeconds = 9 // not the status: not sent
	if wrote, err := e.PatchStatus(t.Context(), before, after); err != nil || !wrote {
		t.Fatalf("got %v, %v", wrote, err)
	}
	live := e.live(before).(*appsv1.Deployment)
	if live.Status.Replicas != 3 || len(live.Status.Conditions) != 2 || live.Spec.MinReadySeconds != 0 {
		t.Errorf("status %+v, minReadySeconds %d", live.Status, live.Spec.MinReadySeconds)
	}

	e.server.Writes.Reset()
	if wrote, err := e.PatchStatus(t.Context(), live, live.DeepCopy()); err != nil || wrote {
		t.Errorf("unchanged status: got %v, %v", wrote, err)
	}
	e.server.Writes.ExpectNone(t)

	after = live.DeepCopy()
	after.Status.Replicas, after.Status.Conditions = 0, after.Status.Conditions[:1]
	if _, err := e.PatchStatus(t.Context(), live, after); err != nil {
		t.Fatal(err)
	}
	if live := e.live(before).(*appsv1.Deployment); live.Status.Replicas != 0 || len(live.Status.Conditions) != 1 {
		t.Errorf("what left the status is still there: %+v", live.Status)
	}
}

func TestAStatusComputedFromAnOldObjectIsNotWritten(t *testing.T) {
	e := newEngine(t)
	e.apply(e.deployment())
	before := e.live(e.deployment()).(*appsv1.Deployment)
	edit(e, before, func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
	after := before.DeepCopy()
	after.Status.Replicas = 3
	if wrote, err := e.PatchStatus(t.Context(), before, after); wrote || !apierrors.IsConflict(err) {
		t.Errorf("got %v, %v, want a conflict", wrote, err)
	}
	if live := e.live(before).(*appsv1.Deployment); live.Status.Replicas != 0 {
		t.Errorf("the old view was written: %+v", live.Status)
	}
}

func TestAPassMayWriteAStatusTwice(t *testing.T) {
	e := newEngine(t)
	e.apply(e.deployment())
	before := e.live(e.deployment()).(*appsv1.Deployment)
	after := before.DeepCopy()
	for replicas := range int32(2) {
		after.Status.Replicas = replicas + 1
		if wrote, err := e.PatchStatus(t.Context(), before, after); err != nil || !wrote {
			t.Fatalf("write %d: %v, %v", replicas+1, wrote, err)
		}
		before = after.DeepCopy()
	}
	edit(e, e.live(before).(*appsv1.Deployment), func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
	after.Status.Replicas = 3
	if _, err := e.PatchStatus(t.Context(), before, after); !apierrors.IsConflict(err) {
		t.Errorf("somebody has changed the object since: %v, want a conflict", err)
	}
}

func TestApplyAndStatusDoNotUndoEachOther(t *testing.T) {
	e := newEngine(t)
	e.apply(e.deployment())
	before := e.live(e.deployment()).(*appsv1.Deployment)
	after := before.DeepCopy()
	after.Status.Replicas = 3
	if _, err := e.PatchStatus(t.Context(), before, after); err != nil {
		t.Fatal(err)
	}
	e.see(e.live(before))
	deployment := e.deployment()
	deployment.Spec.MinReadySeconds = 4
	e.apply(deployment)
	if live := e.live(before).(*appsv1.Deployment); live.Status.Replicas != 3 || live.Spec.MinReadySeconds != 4 {
		t.Errorf("status %+v, minReadySeconds %d", live.Status, live.Spec.MinReadySeconds)
	}
}
