// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GetConditions returns the conditions of the status.
func (p *NodeSetPowerState) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions, which are about the object as it is.
func (p *NodeSetPowerState) SetConditions(conditions []metav1.Condition) {
	p.Status.ObservedGeneration, p.Status.Conditions = p.Generation, conditions
}

// GetConditions returns the conditions of the status.
func (c *JailedConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions, which are about the object as it is.
func (c *JailedConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.ObservedGeneration, c.Status.Conditions = c.Generation, conditions
}

// GetConditions returns the conditions of the status.
func (c *ActiveCheck) GetConditions() []metav1.Condition { return c.Status.get() }

// SetConditions replaces the conditions, which are about the object as it is.
func (c *ActiveCheck) SetConditions(conditions []metav1.Condition) {
	c.Status.set(c.Generation, conditions)
}

// GetConditions returns the conditions of the status.
func (c *NodeConfigurator) GetConditions() []metav1.Condition { return c.Status.get() }

// SetConditions replaces the conditions, which are about the object as it is.
func (c *NodeConfigurator) SetConditions(conditions []metav1.Condition) {
	c.Status.set(c.Generation, conditions)
}

func (s *StatusMetadata) get() []metav1.Condition {
	out := make([]metav1.Condition, 0, len(s.Conditions))
	for i := range s.Conditions {
		out = append(out, s.Conditions[i].plain())
	}
	return out
}

// set keeps the time of the last change of conditions that are as they were. Others have that of their transition.
func (s *StatusMetadata) set(generation int64, conditions []metav1.Condition) {
	out := make([]Condition, 0, len(conditions))
	for _, c := range conditions {
		i := slices.IndexFunc(s.Conditions, func(was Condition) bool { return was.plain() == c })
		if i >= 0 {
			out = append(out, s.Conditions[i])
			continue
		}
		out = append(out, Condition{
			Type: c.Type, Status: c.Status, ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime,
			Reason: c.Reason, Message: c.Message,
		})
	}
	s.ObservedGeneration, s.Conditions = generation, out
}

func (c *Condition) plain() metav1.Condition {
	return metav1.Condition{
		Type: c.Type, Status: c.Status, ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime,
		Reason: c.Reason, Message: c.Message,
	}
}

// GetConditions returns the conditions of the status.
func (n *NodeSet) GetConditions() []metav1.Condition { return n.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (n *NodeSet) SetConditions(conditions []metav1.Condition) { n.Status.Conditions = conditions }
