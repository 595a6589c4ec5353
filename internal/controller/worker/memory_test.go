// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

var (
	now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key = link.Key{Namespace: "n", Name: "demo"}
)

func pod(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }

func TestWhatSlurmSaidBeforeOurLastChangeDoesNotCount(t *testing.T) {
	var m memory
	if !m.shows(pod("w-0"), now) {
		t.Error("a view counts when nothing was changed")
	}
	m.changes(pod("w-0"))
	if !m.awaits(pod("w-0")) || m.awaits(pod("w-1")) {
		t.Error("a change that is on its way is not awaited, or one of another worker")
	}
	m.forget(pod("w-0"))
	if !m.awaits(pod("w-0")) {
		t.Error("the successor of a pod does not wait for what is on its way to the node")
	}
	m.changed(pod("w-0"), now, "")
	if m.awaits(pod("w-0")) {
		t.Error("it is awaited for ever")
	}
	if m.shows(pod("w-0"), now.Add(-time.Millisecond)) || m.shows(pod("w-0"), now) {
		t.Error("a view from before the change counts, or one of the same moment")
	}
	if !m.shows(pod("w-0"), now.Add(time.Millisecond)) || !m.shows(pod("w-1"), now.Add(-time.Hour)) {
		t.Error("a view from after the change, or of another worker, does not count")
	}
	m.forget(pod("w-0"))
	if !m.shows(pod("w-0"), now.Add(-time.Hour)) {
		t.Error("a pod that is gone is remembered")
	}
}

func TestAnAbsenceIsCountedFromTheFirstListWithoutTheNode(t *testing.T) {
	var m memory
	look := func(after time.Duration, known node.Answer) time.Time {
		w := nodeset.Worker{Known: known, Asked: now.Add(after), Pod: nodeset.Pod{Ready: true}}
		m.recall(pod("w-0"), key, &w)
		return w.Absent
	}
	if got := look(0, node.Yes); !got.IsZero() {
		t.Errorf("absent since %v", got)
	}
	if got := look(time.Second, node.No); !got.Equal(now.Add(time.Second)) {
		t.Errorf("absent since %v", got)
	}
	if got := look(time.Minute, node.No); !got.Equal(now.Add(time.Second)) {
		t.Errorf("absent since %v", got)
	}
	for _, between := range []node.Answer{node.Unknown, node.Yes} {
		look(2*time.Minute, between)
		if got := look(3*time.Minute, node.No); !got.Equal(now.Add(3 * time.Minute)) {
			t.Errorf("after %v absent since %v", between, got)
		}
	}
}

func TestAPodThatIsGoneIsForgotten(t *testing.T) {
	var m memory
	m.recall(pod("w-1"), key, &nodeset.Worker{Known: node.Yes})
	if cluster, known := m.forget(pod("w-1")); !known || cluster != key {
		t.Errorf("w-1 was of %v", cluster)
	}
	if _, known := m.forget(pod("w-1")); known {
		t.Error("it is known twice")
	}
}

func TestAnUpdateOfTheRecordIsRememberedUntilItsLastPartArrives(t *testing.T) {
	var m memory
	look := func() nodeset.Worker {
		var w nodeset.Worker
		m.recall(pod("w-0"), key, &w)
		return w
	}
	refused, silent := &rest.Error{Kind: rest.Refused, Message: "Invalid topology"}, &rest.Error{Kind: rest.Unavailable}
	w := m.records(pod("w-0"), "both", 2)
	w.told(refused, now)
	if got := look(); !got.Recording || !got.Recorded.IsZero() {
		t.Errorf("after one part of two: %+v", got)
	}
	w.told(nil, now.Add(time.Second))
	want := nodeset.Attempt{Update: "both", At: now.Add(time.Second), Problem: "Invalid topology"}
	if got := look(); got.Recording || !got.Recorded.Equal(want.At) || got.Tried != want {
		t.Errorf("after both: %+v", got)
	}
	m.records(pod("w-0"), "one", 1).told(silent, now)
	if got := look().Tried; !got.Unanswered || got.Problem != "" {
		t.Errorf("without an answer: %+v", got)
	}
	late := m.records(pod("w-0"), "late", 1)
	m.forget(pod("w-0"))
	late.told(refused, now)
	if got := look(); got.Tried != (nodeset.Attempt{}) || got.Recording {
		t.Errorf("the successor of a pod is told what became of its record: %+v", got)
	}
}

func TestAWorkerIsProtectedForAMomentBeforeItIsUsedAgain(t *testing.T) {
	var m memory
	if until := m.guarded(pod("w-0"), now); !until.IsZero() {
		t.Errorf("one that was protected all along waits until %s", until)
	}
	m.protects(pod("w-0"), now)
	if until := m.guarded(pod("w-0"), now); !until.Equal(now.Add(guard)) {
		t.Errorf("one that was not waits until %s", until)
	}
	if until := m.guarded(pod("w-0"), now.Add(guard/2)); !until.Equal(now.Add(guard)) {
		t.Errorf("half the time later it waits until %s", until)
	}
	m.protects(pod("w-0"), now.Add(guard/2))
	if until := m.guarded(pod("w-0"), now.Add(guard/2)); !until.Equal(now.Add(guard + guard/2)) {
		t.Errorf("one whose protection somebody has taken off waits until %s", until)
	}
	if until := m.guarded(pod("w-0"), now.Add(2*guard)); !until.IsZero() {
		t.Errorf("in the end it waits until %s", until)
	}
}

func TestAChangeThatIsRefusedIsTriedAgainLaterEachTime(t *testing.T) {
	var m memory
	at := now
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		m.changed(pod("w-0"), at, "undraining")
		if until := m.refused(pod("w-0"), "undraining", at); !until.Equal(at.Add(pause)) {
			t.Errorf("it waits until %v, want %s", until, pause)
		}
		if until := m.refused(pod("w-0"), "draining", at); !until.IsZero() {
			t.Errorf("another change waits until %v", until)
		}
		at = at.Add(pause)
		if until := m.refused(pod("w-0"), "undraining", at); !until.IsZero() {
			t.Errorf("it waits until %v once the time is over", until)
		}
	}
	for range 20 {
		m.changed(pod("w-0"), at, "undraining")
	}
	if until := m.refused(pod("w-0"), "undraining", at); !until.Equal(at.Add(longestRetry)) {
		t.Errorf("it waits until %v", until)
	}
	m.changed(pod("w-0"), at, "")
	m.changed(pod("w-0"), at, "undraining")
	if until := m.refused(pod("w-0"), "undraining", at); !until.Equal(at.Add(time.Second)) {
		t.Errorf("after one that succeeded it waits until %v", until)
	}
}
