// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Effect is the condition of a component about fields that are set and have no effect.
func Effect(ignored, _ []string) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionFieldsIgnored, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonAllFieldsUsed, Message: "every field that is set has its effect",
	}
	if len(ignored) > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, slinkyv1beta1.ReasonFieldUnsupported
		c.Message = fmt.Sprintf("set, but without effect in this version: %v", ignored)
	}
	return c
}
