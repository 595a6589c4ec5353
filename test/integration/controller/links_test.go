// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// The Slurm cache's two conditions stand beside those of the Controller's own reconciler, and neither writer undoes those of the other.
func TestTheControllerSaysHowItsLinkIs(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `partition: {enabled: true}`)
	reachable := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", slinkyv1beta1.ConditionSlurmReachable, status, reason)
	}
	reachable(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", slinkyv1beta1.ConditionDestructiveActionsPaused, metav1.ConditionFalse, slinkyv1beta1.ReasonWithinBudget)
	operator.Delete[slinkyv1beta1.RestApi](o, "demo")
	reachable(metav1.ConditionFalse, slinkyv1beta1.ReasonNoRestAPI)
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	reachable(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "MaxJobCount=10" })
	reachable(metav1.ConditionTrue, slinkyv1beta1.ReasonAnswering)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "FieldsIgnored", metav1.ConditionFalse, "AllFieldsUsed")
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

// What a minute may see is deleted at once; the others wait, and the Controller shows that. How many those are is decided by the Slurm cache.
func TestDeletionsOverTheBudgetWait(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 5, `partition: {enabled: true}`)
	o.Budget = 2
	o.Restart()
	o.Scale(0)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", slinkyv1beta1.ConditionDestructiveActionsPaused, metav1.ConditionTrue, slinkyv1beta1.ReasonBudgetSpent)
	apiserver.Eventually(t, func() error {
		if left := len(o.Workers()); left != 3 {
			return fmt.Errorf("%d workers are left", left)
		}
		return nil
	})
	o.Settle()
	if left := len(o.Workers()); left != 3 {
		t.Errorf("%d workers are left", left)
	}
}
