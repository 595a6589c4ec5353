// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestTwoNodeSetsShareServiceAndBudget(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `partition: {enabled: true}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: x}, spec: {controllerRef: {name: demo}, replicas: 1}}`)
	apiserver.Eventually(t, func() error {
		s := operator.Get[corev1.Service](o, "slurm-workers-demo")
		if len(s.OwnerReferences) != 2 || !operator.Exists[corev1.Pod](o, "x-0") {
			return fmt.Errorf("the Service is %+v", s)
		}
		return nil
	})
	o.RunWorkers()
	// Slurm's word on the new worker may be later than the second that Settle waits for.
	apiserver.Eventually(t, func() error {
		if s := operator.Get[slinkyv1beta1.NodeSet](o, "x").Status; s.SlurmIdle != 1 || s.AvailableReplicas != 1 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

func TestTheBudgetGoesWithTheLastWhoWantsIt(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `partition: {enabled: true}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: x}, spec: {controllerRef: {name: demo}, replicas: 0}}`)
	shares := func(n int) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			b, err := operator.Find[policyv1.PodDisruptionBudget](o, "slurm-workers-pdb-demo")
			if n == 0 && apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil || len(b.OwnerReferences) != n {
				return errors.Join(err, fmt.Errorf("the budget is %+v, want %d owners", b, n))
			}
			return nil
		})
	}
	shares(2)
	for i, name := range []string{"w", "x"} {
		operator.Change(o, name, func(n *slinkyv1beta1.NodeSet) { n.Spec.WorkloadDisruptionProtection = new(false) })
		shares(1 - i)
	}
	operator.Change(o, "x", func(n *slinkyv1beta1.NodeSet) { n.Spec.WorkloadDisruptionProtection = new(true) })
	shares(1)
}
