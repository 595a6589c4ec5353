// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestThePlanIsVisibleAndADryRunOnlyShowsIt(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 3, `updateStrategy: {rollingUpdate: {maxUnavailable: 1}}`)
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-2"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 && s.Planned == 0 })
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationDryRun: "true"}
		n.Spec.Replicas = new(int32(1))
	})
	want := []slinkyv1beta1.NodeSetStep{
		{Pod: "w-1", Action: "Retire", Cause: "scale-in", Message: "its Slurm node is drained first"},
		{Pod: "w-0", Action: "Retire", Cause: "scale-in", Message: "its Slurm node is drained first"},
	}
	plan := func(want []slinkyv1beta1.NodeSetStep) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			s := operator.Get[slinkyv1beta1.NodeSet](o, "w").Status
			if diff := cmp.Diff(want, s.Plan); diff != "" || int(s.Planned) != len(want) {
				return fmt.Errorf("the plan of %d steps: %s", s.Planned, diff)
			}
			return nil
		})
	}
	plan(want)
	o.Settle()
	for _, p := range o.Workers() {
		if p.Annotations["coxswain.dev/retired"] != "" || p.Annotations[slinkyv1beta1.AnnotationPlan] != "" {
			t.Errorf("%s is touched in a dry run: %v", p.Name, p.Annotations)
		}
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Annotations = nil })
	o.ExpectWorkers("w-2")
	plan(nil)
	o.Scale(0)
	apiserver.Eventually(t, func() error {
		if got := operator.Get[corev1.Pod](o, "w-2").Annotations[slinkyv1beta1.AnnotationPlan]; !strings.HasPrefix(got, "scale-in: waiting for job") {
			return fmt.Errorf("w-2 says %q", got)
		}
		return nil
	})
}

// What a dry run holds up continues when it is over, though nothing else happens then.
func TestTheEndOfADryRunWakesTheWorkers(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `updateStrategy: {type: OnDelete}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	idle := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 2 })
	operator.Change(o, "w-1", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodDeletionCost] = "-1" })
	o.Scale(1)
	o.ExpectWaiting("w-1", "waiting for jobs to end")

	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Annotations = map[string]string{slinkyv1beta1.AnnotationDryRun: "true"}
	})
	operator.Change(o, "w-0", func(p *corev1.Pod) { p.Annotations[slinkyv1beta1.AnnotationPodCordon] = "true" })
	o.Slurm.Finish(job)
	o.Slurm.Finish(idle)
	o.Settle()
	o.ExpectWorkers(operator.WorkerNames(2)...)
	if got := o.NodeState("w-0"); got != "IDLE+DYNAMIC_NORM " {
		t.Errorf("w-0 is drained in a dry run: %s", got)
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Annotations = nil })
	o.ExpectWorkers("w-0")
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned")
}
