// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

var (
	now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key = slurmcache.Key{Namespace: "n", Name: "demo"}
)

func pod(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }

func TestWhatSlurmSaidBeforeOurLastChangeDoesNotCount(t *testing.T) {
	var m memory
	if !m.pending.shownAt(pod("w-0"), now) {
		t.Error("a view counts when nothing was changed")
	}
	m.pending.begin(pod("w-0"))
	if !m.pending.has(pod("w-0")) || m.pending.has(pod("w-1")) {
		t.Error("a change that is on its way is not awaited, or one of another worker")
	}
	m.forget(pod("w-0"))
	if !m.pending.has(pod("w-0")) {
		t.Error("the successor of a pod does not wait for what is on its way to the node")
	}
	m.changed(pod("w-0"), now, "")
	if m.pending.has(pod("w-0")) {
		t.Error("it is awaited for ever")
	}
	if m.pending.shownAt(pod("w-0"), now.Add(-time.Millisecond)) || m.pending.shownAt(pod("w-0"), now) {
		t.Error("a view from before the change counts, or one of the same moment")
	}
	if !m.pending.shownAt(pod("w-0"), now.Add(time.Millisecond)) || !m.pending.shownAt(pod("w-1"), now.Add(-time.Hour)) {
		t.Error("a view from after the change, or of another worker, does not count")
	}
	m.forget(pod("w-0"))
	if !m.pending.shownAt(pod("w-0"), now.Add(-time.Hour)) {
		t.Error("a pod that is gone is remembered")
	}
}

func TestWhoHeldANodeBeforeSlurmctldIsRemembered(t *testing.T) {
	var m memory
	look := func(state, by, reason string) node.Answer {
		w := workerplan.Worker{SlurmView: workerplan.SlurmView{Registered: node.Yes, State: node.Parse(strings.Fields(state)), Reason: node.Reason{Text: reason, SetBy: by, At: now}}}
		w.Record.Drained = w.Reason
		m.recall(pod("w-0"), key, &w)
		return w.Held
	}
	if held := look("IDLE DRAIN INVALID_REG", "slurm", "Low CPUs"); held != node.Unknown {
		t.Errorf("of a node that was not seen before it is known: %s", held)
	}
	look("IDLE", "", "")
	if held := look("IDLE DRAIN INVALID_REG", "slurm", "Low CPUs"); held != node.No {
		t.Errorf("somebody held a node that took jobs: %s", held)
	}
	look("IDLE DRAIN", "root", "bad disk")
	if held := look("IDLE DRAIN INVALID_REG", "slurm", "Low CPUs"); held != node.Yes {
		t.Errorf("the drain of a person is forgotten: %s", held)
	}
}

func TestAnAbsenceIsCountedFromTheFirstListWithoutTheNode(t *testing.T) {
	var m memory
	look := func(after time.Duration, known node.Answer) time.Time {
		w := workerplan.Worker{SlurmView: workerplan.SlurmView{Registered: known, SnapshotTime: now.Add(after)}, Pod: workerpod.Pod{Ready: true}}
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
	m.recall(pod("w-1"), key, &workerplan.Worker{SlurmView: workerplan.SlurmView{Registered: node.Yes}})
	if cluster := m.forget(pod("w-1")); cluster != key {
		t.Errorf("w-1 was of %v", cluster)
	}
	if cluster := m.forget(pod("w-1")); cluster != (slurmcache.Key{}) {
		t.Errorf("it is known twice, of %v", cluster)
	}
}

func TestAnUpdateOfTheRecordIsRememberedUntilItsLastPartArrives(t *testing.T) {
	var m memory
	look := func() workerplan.Worker {
		var w workerplan.Worker
		m.recall(pod("w-0"), key, &w)
		return w
	}
	refused, silent := &rest.Error{Kind: rest.Refused, Message: "Invalid topology"}, &rest.Error{Kind: rest.Unavailable}
	w := m.records.begin(pod("w-0"), "both", 2)
	w.told(refused, now)
	if got := look(); !got.Recording || !got.Recorded.IsZero() {
		t.Errorf("after one part of two: %+v", got)
	}
	w.told(nil, now.Add(time.Second))
	want := workerplan.Attempt{Update: "both", At: now.Add(time.Second), Problem: "Invalid topology"}
	if got := look(); got.Recording || !got.Recorded.Equal(want.At) || got.LastAttempt != want {
		t.Errorf("after both: %+v", got)
	}
	m.records.begin(pod("w-0"), "one", 1).told(silent, now)
	if got := look().LastAttempt; !got.Unanswered || got.Problem != "" {
		t.Errorf("without an answer: %+v", got)
	}
	late := m.records.begin(pod("w-0"), "late", 1)
	m.forget(pod("w-0"))
	late.told(refused, now)
	if got := look(); got.LastAttempt != (workerplan.Attempt{}) || got.Recording {
		t.Errorf("the successor of a pod is told what became of its record: %+v", got)
	}
}

func TestAnAnnouncementIsGoodForOneWriteAndUntilItShows(t *testing.T) {
	m := memory{announced: announcements{process: "we"}}
	at := workerpod.Opening{At: now, By: "we"}
	look := func(after time.Duration, opening workerpod.Opening, states ...string) workerplan.Worker {
		w := workerplan.Worker{Now: now.Add(after), SlurmView: workerplan.SlurmView{SnapshotTime: now.Add(after), Registered: node.Yes, State: node.Parse(states)}, Slurm: "w-0", Writes: workerplan.Writes{Opening: opening}}
		m.recall(pod("w-0"), key, &w)
		return w
	}
	if w := look(0, workerpod.Opening{}, "IDLE", "DRAIN"); !w.Announced.IsZero() || w.Now.Before(w.OpeningUntil) {
		t.Errorf("without one: %s, until %s", w.Announced, w.OpeningUntil)
	}
	if w := look(time.Second, at, "IDLE", "DRAIN"); !w.Announced.Equal(now) || w.Now.Before(w.OpeningUntil) {
		t.Errorf("with one: %s, until %s", w.Announced, w.OpeningUntil)
	}
	m.announced.opens(pod("w-0"), now, now.Add(2*time.Second))
	if w := look(2*time.Second, at, "MIXED"); !w.Announced.IsZero() || !w.OpeningUntil.Equal(at.Over(at.At)) {
		t.Errorf("with one that is used: %s, until %s", w.Announced, w.OpeningUntil)
	}
	again := workerpod.Opening{At: now.Add(3 * time.Second), By: "we"}
	if w := look(3*time.Second, again, "IDLE", "DRAIN"); !w.Announced.Equal(again.At) || !w.OpeningUntil.Equal(at.Over(at.At)) {
		t.Errorf("with the next one: %s, until %s", w.Announced, w.OpeningUntil)
	}
	look(4*time.Second, again, "MIXED")
	if w := look(5*time.Second, again, "IDLE", "DRAIN"); !w.Announced.Equal(again.At) || w.Now.Before(w.OpeningUntil) {
		t.Errorf("after it was seen open: %s, until %s", w.Announced, w.OpeningUntil)
	}
	m.announced.settled(pod("w-0"), m.announced.opens(pod("w-0"), again.At, now.Add(6*time.Second)))
	if w := look(7*time.Second, again, "IDLE", "DRAIN"); w.Now.Before(w.OpeningUntil) {
		t.Errorf("after it has arrived, or was not sent: until %s", w.OpeningUntil)
	}
	m.announced.opens(pod("w-0"), at.At, now.Add(6*time.Second))
	m.announced.settled(pod("w-0"), m.announced.opens(pod("w-0"), again.At, now.Add(6*time.Second)))
	if w := look(7*time.Second, again, "IDLE", "DRAIN"); !w.OpeningUntil.Equal(at.Over(at.At)) {
		t.Errorf("with an earlier one that was not answered: until %s, want %s", w.OpeningUntil, at.Over(at.At))
	}
	m.announced.opens(pod("w-0"), again.At, now.Add(6*time.Second))
	m.forget(pod("w-0"))
	if w := look(7*time.Second, workerpod.Opening{}, "IDLE", "DRAIN"); !w.OpeningUntil.Equal(again.Over(again.At)) {
		t.Errorf("the pod that follows: until %s, want %s", w.OpeningUntil, again.Over(again.At))
	}
}

func TestWhatAnotherOperatorHasAnnouncedIsOverWithTime(t *testing.T) {
	m := memory{announced: announcements{process: "we"}}
	theirs, ours := workerpod.Opening{At: now, By: "they"}, workerpod.Opening{At: now.Add(time.Second), By: "we"}
	look := func(after time.Duration, opening workerpod.Opening, states ...string) workerplan.Worker {
		w := workerplan.Worker{Now: now.Add(after), SlurmView: workerplan.SlurmView{SnapshotTime: now.Add(after), Registered: node.Yes, State: node.Parse(states)}, Slurm: "w-0", Writes: workerplan.Writes{Opening: opening}}
		m.recall(pod("w-0"), key, &w)
		return w
	}
	if w := look(0, theirs, "IDLE"); !w.Announced.IsZero() || !w.OpeningUntil.Equal(theirs.Over(theirs.At)) {
		t.Errorf("theirs: %s, until %s", w.Announced, w.OpeningUntil)
	}
	look(time.Second, ours, "IDLE", "DRAIN")
	look(2*time.Second, ours, "IDLE")
	if w := look(3*time.Second, ours, "IDLE", "DRAIN"); !w.OpeningUntil.Equal(theirs.Over(theirs.At)) {
		t.Errorf("after ours was seen: until %s, want %s", w.OpeningUntil, theirs.Over(theirs.At))
	}
	m.forget(pod("w-0"))
	if w := look(4*time.Second, workerpod.Opening{}, "IDLE", "DRAIN"); !w.OpeningUntil.Equal(theirs.Over(theirs.At)) {
		t.Errorf("the pod that follows: until %s, want %s", w.OpeningUntil, theirs.Over(theirs.At))
	}
	if w := look(theirs.Over(theirs.At).Sub(now), workerpod.Opening{}, "IDLE", "DRAIN"); w.Now.Before(w.OpeningUntil) {
		t.Errorf("in the end: until %s", w.OpeningUntil)
	}
	for n, until := range m.announced.foreign.All() {
		t.Errorf("in the end %v is remembered until %s", n, until)
	}
}

func TestAClockThatGoesAheadHoldsNobodyUp(t *testing.T) {
	m := memory{announced: announcements{process: "we"}}
	ahead := workerpod.Opening{At: now.Add(5 * time.Hour), By: "they"}
	look := func(after time.Duration) workerplan.Worker {
		w := workerplan.Worker{Now: now.Add(after), SlurmView: workerplan.SlurmView{SnapshotTime: now.Add(after), Registered: node.Yes, State: node.Parse([]string{"IDLE", "DRAIN"})}, Slurm: "w-0", Writes: workerplan.Writes{Opening: ahead}}
		m.recall(pod("w-0"), key, &w)
		return w
	}
	over := workerpod.Opening{At: now}.Over(now)
	for _, after := range []time.Duration{0, time.Minute, over.Sub(now)} {
		if w := look(after); !w.OpeningUntil.Equal(over) && w.Now.Before(over) || w.Now.Before(w.OpeningUntil) != w.Now.Before(over) {
			t.Errorf("after %s: until %s, want %s", after, w.OpeningUntil, over)
		}
	}
}

func TestAChangeThatIsRefusedIsTriedAgainLaterEachTime(t *testing.T) {
	var m memory
	at := now
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		m.changed(pod("w-0"), at, "undraining")
		if until := m.retries.until(pod("w-0"), "undraining", at); !until.Equal(at.Add(pause)) {
			t.Errorf("it waits until %v, want %s", until, pause)
		}
		if until := m.retries.until(pod("w-0"), "draining", at); !until.IsZero() {
			t.Errorf("another change waits until %v", until)
		}
		at = at.Add(pause)
		if until := m.retries.until(pod("w-0"), "undraining", at); !until.IsZero() {
			t.Errorf("it waits until %v once the time is over", until)
		}
	}
	for range 20 {
		m.changed(pod("w-0"), at, "undraining")
	}
	if until := m.retries.until(pod("w-0"), "undraining", at); !until.Equal(at.Add(maxRetryInterval)) {
		t.Errorf("it waits until %v", until)
	}
	m.changed(pod("w-0"), at, "")
	m.changed(pod("w-0"), at, "undraining")
	if until := m.retries.until(pod("w-0"), "undraining", at); !until.Equal(at.Add(time.Second)) {
		t.Errorf("after one that succeeded it waits until %v", until)
	}
}
