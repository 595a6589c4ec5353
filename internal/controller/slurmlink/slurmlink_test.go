// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmlink

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	events "sigs.k8s.io/controller-runtime/pkg/event"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestWhatOfARestApiWakesItsLink(t *testing.T) {
	restAPI := func(ready metav1.ConditionStatus) *slinkyv1beta1.RestApi {
		r := &slinkyv1beta1.RestApi{}
		r.Status.Conditions = []metav1.Condition{{Type: slinkyv1beta1.ConditionReady, Status: ready}}
		return r
	}
	tests := []struct {
		name          string
		before, after *slinkyv1beta1.RestApi
		want          bool
	}{
		{"it has become ready", restAPI(metav1.ConditionFalse), restAPI(metav1.ConditionTrue), true},
		{"it is ready when it is heard of first", &slinkyv1beta1.RestApi{}, restAPI(metav1.ConditionTrue), true},
		{"it is ready as before", restAPI(metav1.ConditionTrue), restAPI(metav1.ConditionTrue), false},
		{"it is ready no longer, which the link sees itself", restAPI(metav1.ConditionTrue), restAPI(metav1.ConditionFalse), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := turnsReady().Update(events.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
