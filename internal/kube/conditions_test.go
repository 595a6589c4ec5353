// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// texts is each condition as "type=status reason: message", in order.
func texts(conditions []metav1.Condition) []string {
	var out []string
	for _, c := range conditions {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

func TestSummary(t *testing.T) {
	up := Part{Name: "controller", Ready: true}
	done := Part{Name: "workers", Ready: true, Message: "3 of 3 pods are ready"}
	coming := Part{Name: "workers", Reason: "PodsNotReady", Message: "1 of 3 pods is ready"}
	broken := Part{Name: "login", Stalled: true, Reason: "ImmutableField", Message: "cannot change"}
	mistake := problem.Errorf("spec.extraConf", "InvalidConfig", "line 3 has no value")
	missing := problem.Waitingf("spec.jwtKeyRef", "SecretNotFound", "Secret a does not exist yet")
	tests := []struct {
		name    string
		summary Summary
		want    []string
	}{
		{"nothing to do is ready", Summary{}, []string{
			"Ready=True Available: everything matches the spec", "Reconciling=False Reconciled: nothing is in progress", "Stalled=False Reconciled: nothing needs attention",
		}},
		{"all parts ready is ready", Summary{Parts: []Part{up, done}}, []string{
			"Ready=True Available: controller is ready; workers: 3 of 3 pods are ready", "Reconciling=False Reconciled: nothing is in progress", "Stalled=False Reconciled: nothing needs attention",
		}},
		{"a part on its way is reconciling", Summary{Parts: []Part{up, coming}}, []string{
			"Ready=False PodsNotReady: workers: 1 of 3 pods is ready", "Reconciling=True PodsNotReady: workers: 1 of 3 pods is ready", "Stalled=False Reconciled: nothing needs attention",
		}},
		{"a mistake stalls, and gives Ready its reason", Summary{Parts: []Part{up, coming}, Problems: problem.List{mistake}}, []string{
			"Ready=False InvalidConfig: spec.extraConf: line 3 has no value; workers: 1 of 3 pods is ready",
			"Reconciling=True PodsNotReady: workers: 1 of 3 pods is ready",
			"Stalled=True InvalidConfig: spec.extraConf: line 3 has no value",
		}},
		{"a stalled part stalls the whole", Summary{Parts: []Part{broken}}, []string{
			"Ready=False ImmutableField: login: cannot change", "Reconciling=False Reconciled: nothing is in progress", "Stalled=True ImmutableField: login: cannot change",
		}},
		{"what is missing and may appear does not stall", Summary{Problems: problem.List{missing}}, []string{
			"Ready=False SecretNotFound: spec.jwtKeyRef: Secret a does not exist yet",
			"Reconciling=True SecretNotFound: spec.jwtKeyRef: Secret a does not exist yet",
			"Stalled=False Reconciled: nothing needs attention",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.summary.Generation, tt.summary.Now = 4, time.Unix(1000, 500)
			var conditions []metav1.Condition
			tt.summary.Write(&conditions)
			if diff := cmp.Diff(tt.want, texts(conditions)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, c := range conditions {
				if c.ObservedGeneration != 4 || !c.LastTransitionTime.Time.Equal(time.Unix(1000, 0)) {
					t.Errorf("%s: generation %d, since %s", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
		})
	}
}

func TestTimeMovesOnlyWithTheStatus(t *testing.T) {
	var conditions []metav1.Condition
	first, later := time.Unix(1000, 0), time.Unix(2000, 0)
	Summary{Now: first, Parts: []Part{{Name: "a", Reason: "X", Message: "1"}}}.Write(&conditions)
	Summary{Now: later, Parts: []Part{{Name: "a", Reason: "X", Message: "2"}}}.Write(&conditions)
	if got := conditions[0].LastTransitionTime.Time; !got.Equal(first) || conditions[0].Message != "a: 2" {
		t.Errorf("a new message moved the time to %s", got)
	}
	Summary{Now: later, Parts: []Part{{Name: "a", Ready: true}}}.Write(&conditions)
	if got := conditions[0].LastTransitionTime.Time; !got.Equal(later) {
		t.Errorf("a new status left the time at %s", got)
	}
	before := append([]metav1.Condition(nil), conditions...)
	Summary{Now: time.Unix(3000, 0), Parts: []Part{{Name: "a", Ready: true}}}.Write(&conditions)
	if diff := cmp.Diff(before, conditions); diff != "" {
		t.Errorf("writing the same again changed something:\n%s", diff)
	}
}

func TestPartOf(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Reason: "Because", Message: kind + " message"}
	}
	tests := []struct {
		name       string
		conditions []metav1.Condition
		want       Part
	}{
		{"a component without conditions is on its way", nil,
			Part{Name: "a", Reason: ReasonWaiting, Message: "has not reported on its latest spec yet"}},
		{"a component that is ready for an older spec is on its way", []metav1.Condition{condition(ConditionReady, metav1.ConditionTrue, 1)},
			Part{Name: "a", Reason: ReasonWaiting, Message: "has not reported on its latest spec yet"}},
		{"a ready component is ready", []metav1.Condition{condition(ConditionReady, metav1.ConditionTrue, 2)},
			Part{Name: "a", Ready: true, Reason: "Because", Message: "Ready message"}},
		{"a stalled component is stalled", []metav1.Condition{condition(ConditionReady, metav1.ConditionFalse, 2), condition(ConditionStalled, metav1.ConditionTrue, 2)},
			Part{Name: "a", Stalled: true, Reason: "Because", Message: "Ready message"}},
		{"an unknown component is not ready", []metav1.Condition{condition(ConditionReady, metav1.ConditionUnknown, 2)},
			Part{Name: "a", Reason: "Because", Message: "Ready message"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, PartOf("a", 2, tt.conditions)); diff != "" {
				t.Errorf("part (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakesAreToldOnceAndAgainWhenTheyChange(t *testing.T) {
	mistake := func(message string) problem.List {
		return problem.List{problem.Errorf("spec.x", "InvalidConfig", "%s", message)}
	}
	steps := []struct {
		name    string
		summary Summary
		want    []string
	}{
		{"on its way", Summary{Parts: []Part{{Name: "a", Reason: "X", Message: "m"}}}, nil},
		{"a mistake", Summary{Problems: mistake("100% wrong")}, []string{"Warning InvalidConfig spec.x: 100% wrong"}},
		{"the same mistake", Summary{Problems: mistake("100% wrong")}, nil},
		{"another mistake", Summary{Problems: mistake("still wrong")}, []string{"Warning InvalidConfig spec.x: still wrong"}},
		{"put right", Summary{}, []string{"Normal Available everything matches the spec"}},
		{"at rest", Summary{}, nil},
	}
	var conditions []metav1.Condition
	for _, step := range steps {
		recorder := events.NewFakeRecorder(10)
		Report(recorder, &corev1.ConfigMap{}, &conditions, step.summary)
		close(recorder.Events)
		var got []string
		for event := range recorder.Events {
			got = append(got, event)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", step.name, diff)
		}
	}
}
