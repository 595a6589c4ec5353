// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

func TestASuspensionIsToldStepByStep(t *testing.T) {
	words := []string{slinkyv1beta1.ReasonSuspended, slinkyv1beta1.ReasonSuspending, slinkyv1beta1.ReasonResuming, slinkyv1beta1.ReasonResumed}
	for name, test := range map[string]struct {
		before          string
		suspend         bool
		stopped, ready  bool
		want, wantReady string
	}{
		"what was never suspended says nothing of it":              {ready: true, wantReady: "True Available"},
		"what is to stop has pods":                                 {suspend: true, ready: true, want: "False Suspending", wantReady: "False Suspending"},
		"the pods of what is to stop are gone":                     {suspend: true, stopped: true, before: "Suspending", want: "True Suspended", wantReady: "True Suspended"},
		"what is to run is not ready":                              {before: "Suspended", want: "False Resuming", wantReady: "False Available"},
		"what is to run is ready again":                            {before: "Resuming", ready: true, want: "False Resumed", wantReady: "True Available"},
		"a later loss of readiness is no matter of the suspension": {before: "Resumed", want: "False Resumed", wantReady: "False Available"},
		"what is to run never went":                                {before: "Suspending", ready: true, want: "False Resumed", wantReady: "True Available"},
		"what ran again is to stop again":                          {before: "Resumed", suspend: true, want: "False Suspending", wantReady: "False Suspending"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reconcile.Suspension{Suspend: test.suspend, Stopped: test.stopped, Ready: test.ready}
			if test.before != "" {
				s.Before = &metav1.Condition{Type: "Suspended", Reason: test.before}
			}
			got := ""
			if c, ok := s.Condition(); ok {
				if c.Type != slinkyv1beta1.ConditionSuspended || !slices.Contains(words, c.Reason) {
					t.Errorf("the API knows no %s with reason %s", c.Type, c.Reason)
				}
				got = string(c.Status) + " " + c.Reason
			}
			if got != test.want {
				t.Errorf("condition %q, want %q", got, test.want)
			}
			part := s.Part(kube.Part{Name: "x", Ready: test.ready, Reason: "Available"})
			status := map[bool]string{true: "True ", false: "False "}[part.Ready]
			if status+part.Reason != test.wantReady || part.Stalled {
				t.Errorf("ready %+v, want %s", part, test.wantReady)
			}
		})
	}
}
