// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const heavier = `{extraConf: "Weight=9 Features=a,b", slurmd: {resources: {limits: {memory: 400Mi}}}}`

// lighten gives the workers another weight, other features and less memory.
func lighten(t *testing.T, o *operator.Operator) {
	t.Helper()
	change := manifest.Parse[slinkyv1beta1.NodeSetSpec](t, heavier)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf, n.Spec.Slurmd = change.ExtraConf, change.Slurmd })
}

// expectGiven waits until slurmctld has this in the record of w-0: weight, features, and the memory that it gives to jobs.
func expectGiven(t *testing.T, o *operator.Operator, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		n, _ := o.Slurm.Node("w-0")
		got := fmt.Sprintf("%d %v %d", n.Record.Weight, n.Features, n.Record.RealMemory-n.Record.MemSpecLimit)
		if got != want {
			return fmt.Errorf("the record says %s, want %s", got, want)
		}
		return nil
	})
}

func TestWhatAWorkerRegistersWithChanges(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `extraConf: "Weight=5 Features=a", slurmd: {resources: {limits: {memory: 600Mi}}}`)
	expectGiven(t, o, "5 [w a] 600")
	expectComment(t, o)
	before := operator.Get[corev1.Pod](o, "w-0").UID
	lighten(t, o)
	o.ExpectLeft() // and its record is there until it is gone
	o.ExpectReplaced("w-0", before)
	if n, there := o.Slurm.Node("w-0"); there {
		t.Errorf("the record is there when the successor starts: %+v", n)
	}
	o.Bind("w-0", nodes[0])
	o.RunWorkers()
	expectGiven(t, o, "9 [w a b] 400")
	expectAttention(t, o, "w-0", "", "")

	// What does not change leaves the record alone.
	before = operator.Get[corev1.Pod](o, "w-0").UID
	expectComment(t, o)
	registered, _ := o.Slurm.Node("w-0")
	o.Kill("w-0")
	o.ExpectReplaced("w-0", before)
	if n, there := o.Slurm.Node("w-0"); !there || n.Comment != registered.Comment {
		t.Errorf("the record of the same registration is another one: %s", cmp.Diff(registered, n))
	}
}

func TestAnAdministratorHoldsTheRecordOfAWorker(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `extraConf: "Weight=5 Features=a", slurmd: {resources: {limits: {memory: 600Mi}}}`)
	expectComment(t, o)
	if err := o.Slurm.Update("root", "w-0", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	before := operator.Get[corev1.Pod](o, "w-0").UID
	lighten(t, o)
	o.ExpectLeft()
	o.ExpectReplaced("w-0", before)
	o.ExpectNode("w-0", "IDLE+DRAIN+DYNAMIC_NORM bad disk")
	o.Bind("w-0", nodes[0])
	o.RunWorkers()
	expectGiven(t, o, "5 [w a] 600")
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonRecordOutdated, "the pod registers with other values than Slurm's record of node w-0 has")
}

func TestSlurmdOffersLessThanTheRecordWants(t *testing.T) {
	t.Parallel()
	o, nodes := operator.StartWorkersOn(t, 1, `partition: {enabled: true}`)
	expectComment(t, o)
	o.Slurm.Register(fake.Node{Name: "w-0", CPUs: 4, RealMemory: 500}) // after a boot with less memory
	expectAttention(t, o, "w-0", slinkyv1beta1.ReasonInvalidRegistration, "Low RealMemory (reported:500 < 100.00% of configured:24000)")
	before := operator.Get[corev1.Pod](o, "w-0").UID
	o.Kill("w-0")
	o.ExpectReplaced("w-0", before)
	o.Bind("w-0", nodes[0])
	o.Slurm.Register(fake.Node{Name: "w-0", CPUs: 4, RealMemory: 500})
	o.SetPod("w-0", corev1.PodRunning)
	o.ExpectNode("w-0", "IDLE+DYNAMIC_NORM ")
	expectAttention(t, o, "w-0", "", "")
}

// expectComment waits until the record of w-0 has its owner.
func expectComment(t *testing.T, o *operator.Operator) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if n, _ := o.Slurm.Node("w-0"); n.Comment == "" {
			return fmt.Errorf("there is no comment yet: %+v", n)
		}
		return nil
	})
}
