// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// The condition of a suspended component, and its reasons. They have the values of the constants in api/.
const (
	conditionSuspended = "Suspended"
	reasonSuspended    = "Suspended"
	reasonSuspending   = "Suspending"
	reasonResuming     = "Resuming"
	reasonResumed      = "Resumed"
)

// Suspension is what is known of a component that spec.suspend can stop.
type Suspension struct {
	// Suspend is what the spec asks for.
	Suspend bool
	// Stopped is true if the component has no pod, and none is wanted.
	Stopped bool
	// Ready is true if all pods are ready that the component is to have when it is not suspended.
	Ready bool
	// Before is the condition Suspended as it was; nil for none.
	Before *metav1.Condition
}

// Condition is the condition Suspended. A component that was never suspended has none.
func (s Suspension) Condition() (metav1.Condition, bool) {
	is := func(status metav1.ConditionStatus, reason, message string) (metav1.Condition, bool) {
		return metav1.Condition{Type: conditionSuspended, Status: status, Reason: reason, Message: message}, true
	}
	switch {
	case s.Suspend && s.Stopped:
		return is(metav1.ConditionTrue, reasonSuspended, "spec.suspend is true, and no pod is left")
	case s.Suspend:
		return is(metav1.ConditionFalse, reasonSuspending, "spec.suspend is true, and pods are still there")
	case s.Before == nil:
		return metav1.Condition{}, false
	case s.Ready || s.Before.Reason == reasonResumed:
		return is(metav1.ConditionFalse, reasonResumed, "spec.suspend is false again")
	default:
		return is(metav1.ConditionFalse, reasonResuming, "spec.suspend is false again, and it is not ready yet")
	}
}

// Part is the component as a part that has to be ready. A suspended component is ready when it is stopped; part is the result
// otherwise.
func (s Suspension) Part(part kube.Part) kube.Part {
	if !s.Suspend {
		return part
	}
	part.Ready, part.Stalled, part.Reason, part.Message = s.Stopped, false, reasonSuspending, "is being stopped"
	if s.Stopped {
		part.Reason, part.Message = reasonSuspended, "is stopped, since spec.suspend is true"
	}
	return part
}

// ReadyReason is the reason of a component that is ready.
func (s Suspension) ReadyReason() string {
	if s.Suspend {
		return reasonSuspended
	}
	return ""
}
