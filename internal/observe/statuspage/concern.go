// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Condition is a condition of an object on the page.
type Condition struct {
	// Object is like "Controller demo".
	Object  string
	Type    string
	Status  string
	Reason  string
	Message string
	// Since is when the status became what it is, in RFC 3339.
	Since string
}

// weight returns how urgent a condition is: 0 for one that is as it should be, and more for what a person should see first.
//
//	condition                                weight   why
//	Stalled True                             3        nothing happens until a person acts
//	any other True that should be False      2
//	any other that should be True            2
//	Reconciling, EditWaits True              1        it goes away by itself
//	PopulateJailMode                         0        only its reason has a meaning
//	JobsConfined                             0        Slurm's default is that they are not
func weight(c metav1.Condition) int {
	abnormal := c.Status != metav1.ConditionFalse
	switch c.Type {
	case slinkyv1beta1.ConditionStalled:
		if abnormal {
			return 3
		}
		return 0
	case slinkyv1beta1.ConditionReconciling, slinkyv1beta1.ConditionEditWaits:
		if abnormal {
			return 1
		}
		return 0
	case slinkyv1beta1.ConditionFieldsIgnored, slinkyv1beta1.ConditionConfigDoubtful, slinkyv1beta1.ConditionDestructiveActionsPaused,
		slinkyv1beta1.ConditionSuspended, slinkyv1beta1.ConditionWorkersUnknown, slinkyv1beta1.ConditionDrainsByChecksPaused, nebiusv1.ConditionImagesReplaced:
		if abnormal {
			return 2
		}
		return 0
	case nebiusv1.ConditionPopulateJailMode, slinkyv1beta1.ConditionJobsConfined:
		return 0
	}
	if c.Status != metav1.ConditionTrue {
		return 2
	}
	return 0
}

// sortConditions separates the conditions that are not as they should be, the most urgent first, from all others.
func sortConditions(objects []Object) (concerns, fine []Condition) {
	type weighed struct {
		Condition
		weight int
	}
	var all []weighed
	for _, o := range objects {
		for _, c := range o.Conditions {
			if o.Kind == "SlurmCluster" && c.Type == slinkyv1beta1.ConditionEditWaits {
				continue // it repeats that of its Controller
			}
			all = append(all, weighed{Condition{
				Object: o.Kind + " " + o.Name, Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
				Since: stamp(c.LastTransitionTime.Time),
			}, weight(c)})
		}
	}
	slices.SortStableFunc(all, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	for _, c := range all {
		if c.weight > 0 {
			concerns = append(concerns, c.Condition)
		} else {
			fine = append(fine, c.Condition)
		}
	}
	return concerns, fine
}

// stamp returns a time in UTC, and empty for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
