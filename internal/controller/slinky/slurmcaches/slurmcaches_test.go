// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcaches

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	events "sigs.k8s.io/controller-runtime/pkg/event"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestWhatWakesALink(t *testing.T) {
	conditions := func(ready metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: slinkyv1beta1.ConditionReady, Status: ready}}
	}
	kinds := map[string]func([]metav1.Condition) client.Object{
		"RestApi": func(c []metav1.Condition) client.Object {
			return &slinkyv1beta1.RestApi{Status: slinkyv1beta1.RestApiStatus{Conditions: c}}
		},
		"Controller": func(c []metav1.Condition) client.Object {
			return &slinkyv1beta1.Controller{Status: slinkyv1beta1.ControllerStatus{Conditions: c}}
		},
	}
	tests := []struct {
		name          string
		before, after []metav1.Condition
		want          bool
	}{
		{"has become ready", conditions(metav1.ConditionFalse), conditions(metav1.ConditionTrue), true},
		{"is ready when it is heard of first", nil, conditions(metav1.ConditionTrue), true},
		{"is ready as before", conditions(metav1.ConditionTrue), conditions(metav1.ConditionTrue), false},
		{"is ready no longer, which the link sees itself", conditions(metav1.ConditionTrue), conditions(metav1.ConditionFalse), false},
	}
	for kind, object := range kinds {
		for _, tt := range tests {
			t.Run("a "+kind+" "+tt.name, func(t *testing.T) {
				if got := turnsReady().Update(events.UpdateEvent{ObjectOld: object(tt.before), ObjectNew: object(tt.after)}); got != tt.want {
					t.Errorf("%v, want %v", got, tt.want)
				}
			})
		}
	}
}
