// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// doubtful tells of keys that slurmctld may or may not know, and of a table of nodes that is too small for those to come.
func doubtful(doubts problem.List) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionConfigDoubtful, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonKeysKnown, Message: "all keys of the configuration are known",
	}
	if len(doubts) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, slinkyv1beta1.ReasonUnknownKeys, doubts.Message()
		if doubts[0].Reason == slinkyv1beta1.ReasonTooManyNodes {
			c.Reason = doubts[0].Reason
		}
	}
	return c
}
