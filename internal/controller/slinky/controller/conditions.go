// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// doubtful tells of what slurmctld starts with, as far as the operator knows, and that may not do.
func doubtful(doubts problem.List) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionConfigDoubtful, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonKeysKnown, Message: "all keys of the configuration are known",
	}
	if len(doubts) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, slinkyv1beta1.ReasonUnknownKeys, doubts.Message()
		if r := doubts[0].Reason; r == slinkyv1beta1.ReasonTooManyNodes || r == slinkyv1beta1.ReasonHealthCheckTimeoutTooLong {
			c.Reason = r
		}
	}
	return c
}
