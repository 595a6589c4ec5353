// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestARollingUpdateReplacesOneAfterTheOtherAndWaitsForJobs(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 3, `updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	before := map[string]types.UID{}
	for _, p := range o.Workers() {
		before[p.Name] = p.UID
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf = "Weight=7" })
	// Idle ones first, high ordinals first among them; the busy one last.
	for _, name := range []string{"w-2", "w-0"} {
		o.ExpectReplaced(name, before[name])
		for _, p := range o.Workers() {
			if p.Name != name && p.Status.Phase != corev1.PodRunning {
				t.Errorf("%s is %s while %s is replaced", p.Name, p.Status.Phase, name)
			}
		}
		o.RunWorkers()
	}
	o.ExpectWaiting("w-1", "waiting for jobs to end")
	o.Settle()
	if operator.Get[corev1.Pod](o, "w-1").UID != before["w-1"] {
		t.Fatal("w-1 was replaced while its job ran")
	}
	o.Slurm.Finish(job)
	o.ExpectReplaced("w-1", before["w-1"])
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool {
		return s.UpdatedReplicas == 3 && s.SlurmDrain == 0 && s.SlurmIdle == 3
	})
}

func TestARollingUpdateWaitsUntilANewWorkerHasPassedItsChecks(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`)
	before := map[string]types.UID{}
	for _, p := range o.Workers() {
		before[p.Name] = p.UID
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf, n.Spec.RequiredChecks = "Weight=7", []string{"disk"} })
	o.ExpectReplaced("w-1", before["w-1"])
	o.RunWorkers()
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.UpdatedReplicas == 1 && s.ReadyReplicas == 2 })
	o.Settle()
	if w := operator.Get[corev1.Pod](o, "w-0"); w.UID != before["w-0"] || w.Annotations[slinkyv1beta1.AnnotationRetired] != "" {
		t.Fatal("w-0 goes while w-1 takes no jobs yet")
	}
	operator.Change(o, "w-1", func(p *corev1.Pod) {
		p.Annotations[slinkyv1beta1.AnnotationCheckPrefix+"disk"] = slinkyv1beta1.CheckPassed + "node/uid/"
	})
	o.ExpectReplaced("w-0", before["w-0"])
}
