// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GetConditions returns the conditions of the status.
func (c *SlurmCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (c *SlurmCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }
