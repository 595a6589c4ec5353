// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcaches

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// bearable is how long a Slurm cache may be without trust before that is reported: slurmctld restarts in less.
const bearable = 15 * time.Second

// maxWordsShown is how many unknown words of states the message has.
const maxWordsShown = 8

// facts are what is known about the Slurm cache of one Controller.
type facts struct {
	// Now is the time of the reconcile.
	Now time.Time
	// Last is the condition SlurmReachable as it stands; nil when there is none.
	Last *metav1.Condition
	// Missing is why there is no Slurm cache, as reason and message; the reason is empty when there is one.
	Missing [2]string
	// Snapshot is what the Slurm cache knows, Budget what is spent of its budget.
	Snapshot *slurmcache.Snapshot
	Budget   slurmcache.Budget
}

// unlinked reports whether a reason is one for which there was no Slurm cache.
func unlinked(reason string) bool {
	return slices.Contains([]string{slinkyv1beta1.ReasonNoRestAPI, slinkyv1beta1.ReasonKeyMissing, slinkyv1beta1.ReasonSuspended}, reason)
}

// reachable decides the condition SlurmReachable, and when to decide again although nothing happens; zero is never.
func reachable(f facts) (c metav1.Condition, again time.Time) {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: slinkyv1beta1.ConditionSlurmReachable, Status: status, Reason: reason, Message: message}
	}
	if f.Missing[0] != "" {
		return is(metav1.ConditionFalse, f.Missing[0], f.Missing[1]), time.Time{}
	}
	const consequence = "; until that changes, the operator drains, undrains and deletes no worker if it needs Slurm's answer for that"
	s := f.Snapshot
	if s.Trust == slurmcache.Fresh {
		return is(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering, "slurmrestd answers, and its answers are consistent"+unrecognised(s)), time.Time{}
	}
	if until := s.Since.Add(bearable); f.Now.Before(until) {
		if f.Last != nil && (f.Last.Status == metav1.ConditionTrue || f.Last.Reason == slinkyv1beta1.ReasonConnecting) {
			return *f.Last, until
		}
		if f.Last == nil || unlinked(f.Last.Reason) {
			return is(metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting, "slurmrestd has not answered yet"), until
		}
	}
	switch {
	case s.Trust == slurmcache.Suspect:
		return is(metav1.ConditionUnknown, slinkyv1beta1.ReasonAnswersInDoubt, s.Why+consequence), time.Time{}
	case s.Unauthorized:
		return is(metav1.ConditionFalse, slinkyv1beta1.ReasonTokenRefused,
			"slurmctld does not accept tokens signed with the key in spec.jwtKeyRef; restart it if the key was replaced: "+s.Why+consequence), time.Time{}
	}
	return is(metav1.ConditionFalse, slinkyv1beta1.ReasonNotAnswering, s.Why+consequence), time.Time{}
}

// unrecognised returns which words in Slurm's states this release does not know.
func unrecognised(s *slurmcache.Snapshot) string {
	if len(s.Unrecognised) == 0 {
		return ""
	}
	words := fmt.Sprint(s.Unrecognised[:min(len(s.Unrecognised), maxWordsShown)])
	return "; Slurm uses node states that this version of the operator does not know: " + strings.Trim(words, "[]") +
		". The operator treats such a node as free only when no job in Slurm's list is on it"
}

// paused decides the condition DestructiveActionsPaused, and when to decide again although nothing happens.
func paused(f facts) (c metav1.Condition, again time.Time) {
	c = metav1.Condition{
		Type: slinkyv1beta1.ConditionDestructiveActionsPaused, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonWithinBudget, Message: "no deletion of a worker waits",
	}
	if f.Now.Before(f.Budget.Until) {
		c.Status, c.Reason = metav1.ConditionTrue, slinkyv1beta1.ReasonBudgetSpent
		c.Message = fmt.Sprintf("%d workers were deleted within a minute, which is the limit of this cluster; the other deletions follow. "+
			"If you did not mean to delete so many, undo the change that causes it; to allow more, raise --destructive-actions-per-minute of the operator", f.Budget.Limit)
	}
	return c, f.Budget.Until
}

// An event informs people that a condition changed.
type event struct {
	kind, reason, message string
}

// eventOf returns the event for a change of a condition, if it gets one. A condition that appears gets one only when it is bad.
func eventOf(was *metav1.Condition, is metav1.Condition) (event, bool) {
	if was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return event{}, false
	}
	bad := is.Status != metav1.ConditionTrue
	if is.Type == slinkyv1beta1.ConditionDestructiveActionsPaused {
		bad = !bad
	}
	switch {
	case is.Reason == slinkyv1beta1.ReasonConnecting || is.Reason == slinkyv1beta1.ReasonNoRestAPI || is.Reason == slinkyv1beta1.ReasonSuspended:
		return event{}, false // nothing is wrong, or not yet
	case bad:
		return event{corev1.EventTypeWarning, is.Reason, is.Message}, true
	case was == nil || is.Reason == slinkyv1beta1.ReasonWithinBudget:
		return event{}, false
	}
	return event{corev1.EventTypeNormal, is.Reason, is.Message}, true
}
