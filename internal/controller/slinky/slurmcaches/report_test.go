// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcaches

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// snapshot returns a snapshot that has had its trust for some time.
func snapshot(trust slurmcache.Trust, ago time.Duration) *slurmcache.Snapshot {
	s := slurmcache.NewSnapshot(now.Add(-ago), trust)
	s.Since = now.Add(-ago)
	s.Why = "because"
	return s
}

func last(status metav1.ConditionStatus, reason string) *metav1.Condition {
	return &metav1.Condition{Type: slinkyv1beta1.ConditionSlurmReachable, Status: status, Reason: reason, Message: "as before"}
}

func TestReachable(t *testing.T) {
	refused := snapshot(slurmcache.Stale, time.Minute)
	refused.Unauthorized = true
	for name, test := range map[string]struct {
		facts  facts
		status metav1.ConditionStatus
		reason string
		again  time.Duration
		event  string
	}{
		"nobody can be asked": {
			facts{Missing: [2]string{slinkyv1beta1.ReasonNoRestAPI, "m"}}, metav1.ConditionFalse, slinkyv1beta1.ReasonNoRestAPI, 0, ""},
		"a suspended slurmctld is not asked, and nobody need be told": {
			facts{Missing: [2]string{slinkyv1beta1.ReasonSuspended, "m"}, Last: last(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)},
			metav1.ConditionFalse, slinkyv1beta1.ReasonSuspended, 0, ""},
		"a slurmctld that goes on is connected to": {
			facts{Snapshot: snapshot(slurmcache.Stale, 0), Last: last(metav1.ConditionFalse, slinkyv1beta1.ReasonSuspended)},
			metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting, 15 * time.Second, ""},
		"the key is missing": {
			facts{Missing: [2]string{slinkyv1beta1.ReasonKeyMissing, "m"}}, metav1.ConditionFalse, slinkyv1beta1.ReasonKeyMissing, 0, "Warning"},
		"a first answer is not news": {
			facts{Snapshot: snapshot(slurmcache.Fresh, 0)}, metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering, 0, ""},
		"a new link is connecting": {
			facts{Snapshot: snapshot(slurmcache.Stale, 2*time.Second)}, metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting, 13 * time.Second, ""},
		"a new RestApi is connected to": {
			facts{Snapshot: snapshot(slurmcache.Stale, 0), Last: last(metav1.ConditionFalse, slinkyv1beta1.ReasonNoRestAPI)},
			metav1.ConditionUnknown, slinkyv1beta1.ReasonConnecting, 15 * time.Second, ""},
		"a short silence is borne": {
			facts{Snapshot: snapshot(slurmcache.Stale, 14*time.Second), Last: last(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)},
			metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering, time.Second, ""},
		"a restart of the operator does not make a failure good": {
			facts{Snapshot: snapshot(slurmcache.Stale, 0), Last: last(metav1.ConditionFalse, slinkyv1beta1.ReasonNotAnswering)},
			metav1.ConditionFalse, slinkyv1beta1.ReasonNotAnswering, 0, ""},
		"a long silence is told": {
			facts{Snapshot: snapshot(slurmcache.Stale, 15*time.Second), Last: last(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)},
			metav1.ConditionFalse, slinkyv1beta1.ReasonNotAnswering, 0, "Warning"},
		"a refused token is told": {
			facts{Snapshot: refused, Last: last(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)},
			metav1.ConditionFalse, slinkyv1beta1.ReasonTokenRefused, 0, "Warning"},
		"a contradiction leaves it open": {
			facts{Snapshot: snapshot(slurmcache.Suspect, time.Minute), Last: last(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)},
			metav1.ConditionUnknown, slinkyv1beta1.ReasonAnswersInDoubt, 0, "Warning"},
		"the end of a contradiction is told": {
			facts{Snapshot: snapshot(slurmcache.Fresh, 0), Last: last(metav1.ConditionUnknown, slinkyv1beta1.ReasonAnswersInDoubt)},
			metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering, 0, "Normal"},
	} {
		t.Run(name, func(t *testing.T) {
			test.facts.Now = now
			c, again := reachable(test.facts)
			if c.Status != test.status || c.Reason != test.reason || c.Message == "" {
				t.Errorf("the condition is %s %s %q, want %s %s", c.Status, c.Reason, c.Message, test.status, test.reason)
			}
			if want := now.Add(test.again); test.again > 0 && !again.Equal(want) || test.again == 0 && !again.IsZero() {
				t.Errorf("again at %s, want after %s", again, test.again)
			}
			if e, _ := eventOf(test.facts.Last, c); e.kind != test.event {
				t.Errorf("the event is %+v, want %q", e, test.event)
			}
		})
	}
}

func TestWordsThatAreNotKnownAreTold(t *testing.T) {
	s := snapshot(slurmcache.Fresh, 0)
	s.Unrecognised = []node.Word{"FROZEN", "HIBERNATING"}
	c, _ := reachable(facts{Now: now, Snapshot: s})
	if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "does not know: FROZEN HIBERNATING. ") {
		t.Errorf("%s %q", c.Status, c.Message)
	}
}

func TestPaused(t *testing.T) {
	spent := slurmcache.Budget{Limit: 20, Spent: 20, Until: now.Add(30 * time.Second)}
	within, until := paused(facts{Now: now, Budget: slurmcache.Budget{Limit: 20, Spent: 3}})
	if within.Status != metav1.ConditionFalse || within.Reason != slinkyv1beta1.ReasonWithinBudget || !until.IsZero() {
		t.Errorf("within the budget: %+v until %s", within, until)
	}
	over, until := paused(facts{Now: now, Budget: spent})
	if over.Status != metav1.ConditionTrue || over.Reason != slinkyv1beta1.ReasonBudgetSpent || !until.Equal(spent.Until) {
		t.Errorf("over the budget: %+v until %s", over, until)
	}
	for name, test := range map[string]struct {
		was  *metav1.Condition
		is   metav1.Condition
		want string
	}{
		"the first condition is not news": {nil, within, ""},
		"a pause is told":                 {&within, over, "Warning"},
		"a first pause is told":           {nil, over, "Warning"},
		"a pause is told once":            {&over, over, ""},
		"the end of a pause is not told":  {&over, within, ""},
	} {
		if e, _ := eventOf(test.was, test.is); e.kind != test.want {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
