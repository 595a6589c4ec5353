// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Finding is the content of a condition.
type Finding struct {
	// Type is the type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// Reason and Message are the reason and message of the condition.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when the status changed last; nil when that is not known.
	Since *metav1.Time `json:"since,omitempty"`
}

func findingOf(c metav1.Condition) Finding {
	out := Finding{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
	if !c.LastTransitionTime.IsZero() {
		out.Since = c.LastTransitionTime.DeepCopy()
	}
	return out
}

// readiness returns condition Ready of an object of that generation. A condition of an earlier generation does not count.
func readiness(generation int64, conditions []metav1.Condition) Finding {
	ready := meta.FindStatusCondition(conditions, slinkyv1beta1.ConditionReady)
	if ready == nil || ready.ObservedGeneration < generation {
		return Finding{
			Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionUnknown, Reason: slinkyv1beta1.ReasonWaiting,
			Message: "the operator has not reported on the latest spec yet",
		}
	}
	return findingOf(*ready)
}

// alarming reports whether a condition asks for attention. Conditions that summarize other objects of the tree do not.
func alarming(c metav1.Condition) bool {
	switch c.Type {
	case slinkyv1beta1.ConditionSlurmReachable:
		return c.Status != metav1.ConditionTrue && c.Reason != slinkyv1beta1.ReasonSuspended
	case slinkyv1beta1.ConditionKeysPresent, slinkyv1beta1.ConditionConfigApplied, slinkyv1beta1.ConditionHighlyAvailable,
		slinkyv1beta1.ConditionVersionSupported, slinkyv1beta1.ConditionDatabaseReachable,
		nebiusv1.ConditionSpecEffective, nebiusv1.ConditionNodeSetRefsResolved, nebiusv1.ConditionJailPopulated, nebiusv1.ConditionJailOverwritten:
		return c.Status == metav1.ConditionFalse
	case nebiusv1.ConditionSConfigControllerAvailable, nebiusv1.ConditionExporterAvailable:
		return c.Status == metav1.ConditionFalse && c.Reason == nebiusv1.ReasonNotAvailable
	case slinkyv1beta1.ConditionFieldsIgnored, slinkyv1beta1.ConditionConfigDoubtful, slinkyv1beta1.ConditionDestructiveActionsPaused,
		slinkyv1beta1.ConditionWorkersUnknown, slinkyv1beta1.ConditionDrainsByChecksPaused, slinkyv1beta1.ConditionEditWaits:
		return c.Status == metav1.ConditionTrue
	}
	return false
}

// findings returns the conditions of an object that ask for attention, but for those whose message condition Ready has as well, and for
// what a SlurmCluster repeats of its Controller.
func findings(kind string, conditions []metav1.Condition, ready Finding) (out []Finding) {
	for _, c := range conditions {
		if kind == "SlurmCluster" && c.Type == slinkyv1beta1.ConditionEditWaits {
			continue
		}
		if alarming(c) && (c.Message == "" || c.Message != ready.Message) {
			out = append(out, findingOf(c))
		}
	}
	slices.SortFunc(out, func(a, b Finding) int { return cmp.Compare(a.Type, b.Type) })
	return out
}
