// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhichConditionsAreAsTheyShouldBe(t *testing.T) {
	for _, tt := range []struct {
		name, kind, status string
		want               int
	}{
		{"a part is ready", "Ready", "True", 0},
		{"a part is not ready", "Ready", "False", 2},
		{"nobody knows whether a part is ready", "Ready", "Unknown", 2},
		{"a person has to act", "Stalled", "True", 3},
		{"nobody has to act", "Stalled", "False", 0},
		{"the operator is working", "Reconciling", "True", 1},
		{"the operator has done all", "Reconciling", "False", 0},
		{"part of an edit waits for jobs", "EditWaits", "True", 1},
		{"fields have no effect", "FieldsIgnored", "True", 2},
		{"all fields have their effect", "FieldsIgnored", "False", 0},
		{"Slurm has lost its state", "WorkersUnknown", "True", 2},
		{"nobody knows whether Slurm has lost its state", "WorkersUnknown", "Unknown", 2},
		{"checks wait", "DrainsByChecksPaused", "True", 2},
		{"nobody waits", "DestructiveActionsPaused", "False", 0},
		{"a part is stopped, which somebody should know", "Suspended", "True", 2},
		{"images of ours run in the place of others", "ImagesReplaced", "True", 2},
		{"only the reason says something", "PopulateJailMode", "False", 0},
		{"a condition that came later counts as one that should be True", "Something", "False", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := weight(metav1.Condition{Type: tt.kind, Status: metav1.ConditionStatus(tt.status)}); got != tt.want {
				t.Errorf("%s %s has weight %d, want %d", tt.kind, tt.status, got, tt.want)
			}
		})
	}
}

func TestTheMostUrgentConditionIsFirst(t *testing.T) {
	conditions := func(pairs ...string) (out []metav1.Condition) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, metav1.Condition{Type: pairs[i], Status: metav1.ConditionStatus(pairs[i+1])})
		}
		return out
	}
	concerns, fine := sortConditions([]Object{
		{Kind: "Controller", Name: "a", Conditions: conditions("Reconciling", "True", "Ready", "False", "SlurmReachable", "True")},
		{Kind: "NodeSet", Name: "b", Conditions: conditions("Ready", "False", "Stalled", "True")},
		{Kind: "SlurmCluster", Name: "c", Conditions: conditions("EditWaits", "True")}, // as its Controller says
	})
	brief := func(all []Condition) (out []string) {
		for _, c := range all {
			out = append(out, c.Object+" "+c.Type+" "+c.Status)
		}
		return out
	}
	want := []string{"NodeSet b Stalled True", "Controller a Ready False", "NodeSet b Ready False", "Controller a Reconciling True"}
	if diff := cmp.Diff(want, brief(concerns)); diff != "" {
		t.Errorf("what is not as it should be:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Controller a SlurmReachable True"}, brief(fine)); diff != "" {
		t.Errorf("what is:\n%s", diff)
	}
}
