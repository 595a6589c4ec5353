// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestTheWorkersOfANodeSetThatAreToBeKeptAreNotDrained(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	set := operator.Get[slinkyv1beta1.NodeSet](o, "w")
	if err := o.User.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func() error {
		if n := operator.Get[slinkyv1beta1.NodeSet](o, "w"); !slices.Equal(n.Finalizers, []string{metav1.FinalizerOrphanDependents}) {
			return fmt.Errorf("the NodeSet is %+v", n)
		}
		return nil
	})
	o.Settle()
	o.ExpectLeft(operator.WorkerNames(2)...)
	for _, name := range operator.WorkerNames(2) {
		if got := o.NodeState(name); got != "IDLE+DYNAMIC_NORM " {
			t.Errorf("%s is %s", name, got)
		}
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Finalizers = nil })
}

func TestTheWorkersOfANodeSetThatIsBeingDeletedAreDrained(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 2, `partition: {enabled: true}`)
	const finalizer = "example.com/keep"
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Finalizers = append(n.Finalizers, finalizer) })
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	operator.Delete[slinkyv1beta1.NodeSet](o, "w")
	o.ExpectLeft("w-0")
	o.ExpectNode("w-0", "MIXED+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination")
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1}) // it waits, and Slurm would end it when it reads its configuration without w-1
	o.Slurm.Finish(job)
	o.ExpectLeft()
	apiserver.Eventually(t, func() error {
		if n := operator.Get[slinkyv1beta1.NodeSet](o, "w"); !slices.Equal(n.Finalizers, []string{finalizer}) {
			return fmt.Errorf("the NodeSet has the finalizers %v", n.Finalizers)
		}
		return nil
	})
	if _, gone := o.Slurm.Node("w-0"); gone {
		t.Error("Slurm still has w-0, which nobody needs")
	}
	if _, there := o.Slurm.Node("w-1"); !there {
		t.Error("Slurm has no w-1, which a job names")
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == finalizer })
	})
}
