// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/powerstate/powerrequest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// bursting returns a SlurmCluster with NodeSet burst of three nodes that Slurm powers up and down, one of which runs at first.
func bursting(t *testing.T) *around {
	t.Helper()
	a := &around{Operator: operator.Start(t), t: t}
	operator.Create[nebiusv1.SlurmCluster](a.Operator, `{metadata: {name: demo}, spec: {slurmNodes: {controller: {}}}}`)
	operator.Create[nebiusv1alpha1.NodeSet](a.Operator, `{metadata: {name: burst}, spec: {clusterName: demo, replicas: 3, ephemeralNodes: true, slurmd: {image: {repository: slurmd}}}}`)
	a.showsNodes("0")
	return a
}

// showsNodes waits until spec.activeNodes has these ordinals, and they have pods, and no others.
func (a *around) showsNodes(ordinals string) {
	a.t.Helper()
	var want []int32
	for _, o := range ordinals {
		want = append(want, o-'0')
	}
	a.until(func() error {
		last, err := operator.Find[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst")
		var pods []string
		workers := a.Workers()
		for _, p := range workers {
			pods = append(pods, p.Name[strings.LastIndexByte(p.Name, '-')+1:])
		}
		if err != nil || !slices.Equal(last.Spec.ActiveNodes, want) || strings.Join(pods, "") != ordinals || int(last.Status.ActiveCount) != len(want) ||
			!allRun(workers) {
			return errors.Join(err, fmt.Errorf("there are pods %v; NodeSetPowerState: %+v", pods, last))
		}
		return nil
	})
}

// allRun reports whether kubelets have started all pods: later pods of showsNodes are not started.
func allRun(pods []corev1.Pod) bool {
	return !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
}

func (a *around) activate(ordinals ...int32) {
	a.t.Helper()
	operator.Change(a.Operator, "burst", func(p *nebiusv1alpha1.NodeSetPowerState) { p.Spec.ActiveNodes = ordinals })
}

func (a *around) powers(node, state string) {
	a.t.Helper()
	if err := a.Slurm.Update("slurm", node, state, ""); err != nil {
		a.t.Fatal(err)
	}
}

// awaitMessage waits until the status has a message about a node.
func (a *around) awaitMessage(ordinal, part string) {
	a.t.Helper()
	a.until(func() error {
		p, err := operator.Find[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst")
		if err != nil {
			return err
		}
		if got := p.Status.NodeStates[ordinal]; !strings.Contains(got.Message, part) {
			return fmt.Errorf("node %s: %+v", ordinal, got)
		}
		return nil
	})
}

func TestANodeSetPowerStateShowsWhatSlurmWants(t *testing.T) {
	t.Parallel()
	a := bursting(t)
	operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst", "Ready", metav1.ConditionTrue, "Available")
	p := operator.Get[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst")
	set := operator.Get[nebiusv1alpha1.NodeSet](a.Operator, "burst")
	if p.Spec.NodeSetRef != "burst" || !metav1.IsControlledBy(p, set) {
		t.Errorf("it is of %q and owned by %v", p.Spec.NodeSetRef, p.OwnerReferences)
	}
	got := p.Status.NodeStates["0"]
	if got.LastTransitionTime == nil || got.Phase != "Running" {
		t.Errorf("node 0: %+v", got)
	}
	got.LastTransitionTime = nil
	if diff := cmp.Diff(nebiusv1alpha1.NodePowerState{Phase: "Running", PodName: "demo-burst-0", SlurmState: "DYNAMIC_NORM"}, got); diff != "" {
		t.Errorf("node 0 (-want, +got):\n%s", diff)
	}

	job := a.Slurm.Submit(fake.Job{Nodes: 3})
	if job == 0 {
		t.Fatal("no job")
	}
	a.showsNodes("012")
	operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst", nebiusv1alpha1.ConditionScalingInProgress, metav1.ConditionFalse, "Reconciled")
	a.Settle()
	a.ExpectNothingWritten(a.Restart)
	// What jobs make of a node is not shown, or each of them would be a write.
	a.Slurm.Cancel(job)
	a.Settle()
	before := operator.Get[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst").ResourceVersion
	job = a.Slurm.Submit(fake.Job{Nodes: 2})
	a.Settle()
	if after := operator.Get[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst").ResourceVersion; after != before {
		t.Errorf("a job has changed the NodeSetPowerState")
	}
	a.Slurm.Cancel(job)
	a.powers("burst-0", "POWER_DOWN")
	a.showsNodes("12")

	// It belongs to the NodeSet: it is made again when it is deleted, and goes with ephemeralNodes.
	operator.Delete[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst")
	a.showsNodes("12")
	operator.Change(a.Operator, "burst", func(n *nebiusv1alpha1.NodeSet) { n.Spec.EphemeralNodes = false })
	operator.ExpectGone[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst")
}

func TestRequestsForPowerReachSlurm(t *testing.T) {
	t.Parallel()
	a := bursting(t)
	a.until(func() error { // Slurm has records of all
		if names := a.Slurm.Names(); len(names) != 3 {
			return fmt.Errorf("Slurm has nodes %v", names)
		}
		return nil
	})
	a.activate(0, 2)
	a.showsNodes("02")

	// A job ends before its node is powered down.
	job := a.Slurm.Submit(fake.Job{NodeList: []string{"burst-0"}})
	a.activate(2)
	a.awaitMessage("0", "will when its jobs have ended")
	a.Settle()
	if pod, err := operator.Find[corev1.Pod](a.Operator, "demo-burst-0"); err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("the pod of a node with a job is gone, or goes (%v)", err)
	}
	if status, _ := a.Slurm.Job(job); !slices.Contains(status.State, "RUNNING") {
		t.Errorf("the job is %v", status.State)
	}
	a.Slurm.Cancel(job)
	a.showsNodes("2")

	// The drain of an administrator is not ended.
	if err := a.Slurm.Update("root", "burst-2", "DRAIN", "bad disk"); err != nil {
		t.Fatal(err)
	}
	a.activate()
	a.awaitMessage("2", "undrain it first")
	a.Settle()
	if n, _ := a.Slurm.Node("burst-2"); n.Reason != "bad disk" || !slices.Contains(n.State, "DRAIN") {
		t.Errorf("the node is %v, %q", n.State, n.Reason)
	}
	if err := a.Slurm.Update("root", "burst-2", "UNDRAIN", ""); err != nil {
		t.Fatal(err)
	}
	a.showsNodes("")

	a.activate(1, 7)
	if got := operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst", "Stalled", metav1.ConditionTrue, slinkyv1beta1.ReasonInvalidSpec); !strings.Contains(got, "no node 7") {
		t.Errorf("condition Stalled says %q", got)
	}
	a.activate(1)
	a.showsNodes("1")
	operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](a.Operator, "burst", "Ready", metav1.ConditionTrue, "Available")
}

// TestPowerManagerIsHeard has the functions of program power-manager change what runs, as a ResumeProgram would.
func TestPowerManagerIsHeard(t *testing.T) {
	t.Parallel()
	a := bursting(t)
	a.until(func() error {
		if names := a.Slurm.Names(); len(names) != 3 {
			return fmt.Errorf("Slurm has nodes %v", names)
		}
		return nil
	})
	var said bytes.Buffer
	request := func(list string, change powerrequest.Change) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		nodes, err := powerrequest.Find(ctx, powerrequest.Nodes{
			Client: a.User, Namespace: a.Namespace, Log: slog.New(slog.NewTextHandler(&said, nil)), Every: 10 * time.Millisecond,
		}, list)
		if err != nil {
			t.Fatal(err)
		}
		if err := nodes.Change(ctx, change); err != nil {
			t.Fatal(err)
		}
		if err := nodes.Wait(ctx, change); err != nil {
			t.Fatal(err)
		}
	}
	request("burst-[1-2]", powerrequest.Resume)
	a.showsNodes("012")
	request("burst-[0-1]", powerrequest.Suspend)
	a.showsNodes("2")
}

func TestANodeSetPowerStateOfNothingSaysSo(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "slurmcluster")
	operator.Create[nebiusv1alpha1.NodeSetPowerState](o, `{metadata: {name: a}, spec: {nodeSetRef: none, activeNodes: [1]}}`)
	operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](o, "a", "Ready", metav1.ConditionFalse, slinkyv1beta1.ReasonReferenceNotFound)
	operator.Create[nebiusv1alpha1.NodeSet](o, `{metadata: {name: plain}, spec: {replicas: 1, slurmd: {image: {repository: slurmd}}}}`)
	operator.Change(o, "a", func(p *nebiusv1alpha1.NodeSetPowerState) { p.Spec.NodeSetRef = "plain" })
	if got := operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](o, "a", "Stalled", metav1.ConditionTrue, nebiusv1alpha1.ReasonNotEphemeral); !strings.Contains(got, "spec.ephemeralNodes") {
		t.Errorf("condition Stalled says %q", got)
	}
	if p := operator.Get[nebiusv1alpha1.NodeSetPowerState](o, "a"); !slices.Equal(p.Spec.ActiveNodes, []int32{1}) {
		t.Errorf("spec.activeNodes is %v", p.Spec.ActiveNodes)
	}
	o.Settle()
}
