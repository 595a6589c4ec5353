// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// Lost says that Slurm was found to have lost its state, and that workers of the NodeSet have been missing there since.
func Lost(n *slinkyv1beta1.NodeSet) bool {
	return meta.IsStatusConditionTrue(n.Status.Conditions, slinkyv1beta1.ConditionWorkersUnknown)
}

// lost tells about workers that a Slurm without its state does not have. The condition is also what is remembered of it; a
// NodeSet that never saw such a thing has none.
func lost(n *slinkyv1beta1.NodeSet, facts plans.Input, plan plans.Plan, out *component.Plan) problem.List {
	if facts.Asked.IsZero() {
		return nil // Slurm says nothing, and what it said last stays
	}
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionWorkersUnknown, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonWorkersKnown, Message: "Slurm has all workers that run",
	}
	if plan.Lost > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, slinkyv1beta1.ReasonStateLost
		c.Message = fmt.Sprintf("%d workers run that Slurm does not have, and it lacks, or lacked, most of the cluster's: it seems to have lost its state. "+
			"Jobs may still run there, so nothing is deleted; bring the state back, or delete the pods to have them register anew", plan.Lost)
	}
	if plan.Lost > 0 || meta.FindStatusCondition(n.Status.Conditions, c.Type) != nil {
		out.Conditions = append(out.Conditions, c)
	}
	if plan.Lost == 0 {
		return nil
	}
	return problem.List{problem.Waitingf("workers", slinkyv1beta1.ReasonWorkersUnknown, "%s", c.Message)}
}
