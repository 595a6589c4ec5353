// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestWhatSlurmSaidBeforeOurLastChangeDoesNotCount(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	pod, other := types.NamespacedName{Namespace: "n", Name: "w-0"}, types.NamespacedName{Namespace: "n", Name: "w-1"}
	var w writes
	if !w.seen(pod, now) {
		t.Error("a view counts when nothing was changed")
	}
	w.wrote(pod, now)
	if w.seen(pod, now.Add(-time.Millisecond)) {
		t.Error("a view from before the change counts")
	}
	if !w.seen(pod, now.Add(time.Millisecond)) || !w.seen(other, now.Add(-time.Hour)) {
		t.Error("a view from after the change, or of another worker, does not count")
	}
	w.forget(pod)
	if !w.seen(pod, now.Add(-time.Hour)) {
		t.Error("a pod that is gone is remembered")
	}
}
