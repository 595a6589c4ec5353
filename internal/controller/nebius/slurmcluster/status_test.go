// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/coxswain-hpc/coxswain/internal/reconcile"

	"github.com/google/go-cmp/cmp"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// at returns a fixed time.
func at() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

type outcome = reconcile.Outcome[facts, *plan, Seen]

// composed composes a spec and has all components report that they are ready, except those in unready.
func composed(c *nebiusv1.SlurmCluster, sets []nebiusv1alpha1.NodeSet, unready ...string) outcome {
	part := func(name string) kube.Part {
		if slices.Contains(unready, name) {
			return kube.Part{Name: name, Reason: "PodsNotReady", Message: "0 of 1 pods are ready"}
		}
		return kube.Part{Name: name, Ready: true, Reason: "Available", Message: "1 of 1 pods are ready"}
	}
	plan := decide(facts{compose.Input{Cluster: c, NodeSets: sets}})
	o := outcome{Plan: plan, Driven: len(plan.Problems) == 0, Now: at(), Seen: Seen{
		Controller: part("Controller"), RestAPI: part("RestApi"), LoginSet: part("LoginSet"), Accounting: part("Accounting"), Exporter: part("Deployment c-exporter"),
	}}
	for _, set := range plan.composed.Components.NodeSets {
		o.Seen.NodeSets = append(o.Seen.NodeSets, part("NodeSet "+set.Name))
	}
	return o
}

func TestAnEditThatWaitsIsToldByTheCluster(t *testing.T) {
	o := composed(&nebiusv1.SlurmCluster{}, nil)
	o.Seen.EditWaits = &metav1.Condition{Type: "EditWaits", Status: metav1.ConditionTrue, Reason: "JobsNeedPartitions", Message: "jobs of old: 2 running"}
	waits := func(o outcome) *metav1.Condition {
		out := report(&nebiusv1.SlurmCluster{}, o)
		found := meta.FindStatusCondition(out.Conditions, "EditWaits")
		if (found == nil) != slices.Contains(out.Drop, "EditWaits") {
			t.Errorf("it is told and dropped: %v", out.Drop)
		}
		return found
	}
	if got := waits(o); got == nil || got.Message != "jobs of old: 2 running" || got.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %v", got)
	}
	o.Seen.EditWaits = nil
	if got := waits(o); got != nil {
		t.Errorf("nothing waits, and the condition is %v", got)
	}
}

func TestStatusIsRolledUp(t *testing.T) {
	for name, test := range map[string]struct {
		spec    nebiusv1.SlurmClusterSpec
		sets    []nebiusv1alpha1.NodeSet
		unready []string
		change  func(*outcome)
		was     nebiusv1.Phase
		phase   nebiusv1.Phase
		// want are conditions as "Type=Status/Reason".
		want string
	}{
		"a cluster without workers, login and accounting is available": {
			phase: nebiusv1.PhaseAvailable,
			want:  "CommonAvailable=True/Available ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=True/Available Reconciling=False/Reconciled Stalled=False/Reconciled",
		},
		"one NodeSet of two that is not ready makes the cluster not available": {
			sets: []nebiusv1alpha1.NodeSet{{}, {}}, unready: []string{"NodeSet c-b"}, phase: nebiusv1.PhaseNotAvailable,
			want: "CommonAvailable=True/Available ControllersAvailable=True/Available WorkersAvailable=False/NotAvailable LoginAvailable=False/Disabled AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=False/PodsNotReady Reconciling=True/PodsNotReady Stalled=False/Reconciled",
		},
		"the REST API counts for readiness, though it has no condition": {
			unready: []string{"RestApi"}, phase: nebiusv1.PhaseAvailable,
			want: "CommonAvailable=True/Available ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=False/PodsNotReady Reconciling=True/PodsNotReady Stalled=False/Reconciled",
		},
		"a cluster at rest is ready, but not available": {
			spec:  nebiusv1.SlurmClusterSpec{Maintenance: nebiusv1.MaintenanceDownscale, SlurmNodes: nebiusv1.SlurmNodes{Worker: &nebiusv1.Worker{Size: 1}, Login: nebiusv1.Login{Size: 1}}},
			phase: nebiusv1.PhaseNotAvailable,
			want:  "CommonAvailable=False/Maintenance ControllersAvailable=False/Maintenance WorkersAvailable=False/Maintenance LoginAvailable=False/Maintenance AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled PopulateJailMode=Unknown/Unknown SpecEffective=True/AllFieldsEffective Ready=True/Maintenance Reconciling=False/Reconciled Stalled=False/Reconciled",
		},
		"an exporter that is not ready keeps nothing else from being so": {
			spec:    nebiusv1.SlurmClusterSpec{SlurmNodes: nebiusv1.SlurmNodes{Exporter: nebiusv1.Exporter{Enabled: true}}},
			unready: []string{"Deployment c-exporter"}, phase: nebiusv1.PhaseAvailable,
			want: "CommonAvailable=True/Available ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled ExporterAvailable=False/NotAvailable PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=True/Available Reconciling=False/Reconciled Stalled=False/Reconciled",
		},
		"an exporter that is ready has a condition": {
			spec: nebiusv1.SlurmClusterSpec{SlurmNodes: nebiusv1.SlurmNodes{Exporter: nebiusv1.Exporter{Enabled: true}}}, phase: nebiusv1.PhaseAvailable,
			want: "CommonAvailable=True/Available ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled ExporterAvailable=True/Available PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=True/Available Reconciling=False/Reconciled Stalled=False/Reconciled",
		},
		"a database that cannot be had needs a person": {
			spec:  nebiusv1.SlurmClusterSpec{SlurmNodes: nebiusv1.SlurmNodes{Accounting: nebiusv1.Accounting{Enabled: true, MariaDBOperator: &nebiusv1.MariaDBOperator{Enabled: true}}}},
			phase: nebiusv1.PhaseNotAvailable,
			want:  "CommonAvailable=True/Available ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/NotAvailable SConfigControllerAvailable=False/Disabled PopulateJailMode=True/none SpecEffective=False/FieldsNotEffective Ready=False/FieldsNotEffective Reconciling=False/Reconciled Stalled=True/FieldsNotEffective",
		},
		"a mistake from the start keeps the cluster pending": {
			spec:  nebiusv1.SlurmClusterSpec{SlurmNodes: nebiusv1.SlurmNodes{Accounting: nebiusv1.Accounting{Enabled: true}}},
			phase: nebiusv1.PhasePending,
			want:  "CommonAvailable=False/NotAvailable ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/NotAvailable SConfigControllerAvailable=False/Disabled PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=False/InvalidSpec Reconciling=False/Reconciled Stalled=True/InvalidSpec",
		},
		"a first pass that fails leaves it pending, and unknown what is not known": {
			change: func(o *outcome) { o.Driven = false }, phase: nebiusv1.PhasePending,
			want: "CommonAvailable=Unknown/Reconciling ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=False/Reconciling Reconciling=True/Reconciling Stalled=False/Reconciled",
		},
		"a later pass that fails does not flap": {
			change: func(o *outcome) { o.Driven = false }, was: nebiusv1.PhaseAvailable, phase: nebiusv1.PhaseAvailable,
			want: "CommonAvailable=Unknown/Reconciling ControllersAvailable=True/Available WorkersAvailable=False/Disabled LoginAvailable=False/Disabled AccountingAvailable=False/Disabled SConfigControllerAvailable=False/Disabled PopulateJailMode=True/none SpecEffective=True/AllFieldsEffective Ready=False/Reconciling Reconciling=True/Reconciling Stalled=False/Reconciled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &nebiusv1.SlurmCluster{Spec: test.spec, Status: nebiusv1.SlurmClusterStatus{Phase: test.was}}
			c.Name, c.Namespace, c.Generation = "c", "slurm", 3
			for i := range test.sets {
				test.sets[i].Name = string(rune('a' + i))
			}
			o := composed(c, test.sets, test.unready...)
			if test.change != nil {
				test.change(&o)
			}
			kind := (&reconciler{Base: reconcile.Base{Recorder: events.NewFakeRecorder(10)}}).kind()
			kind.Conclude(c, o, nil, nil)
			var got []string
			for _, condition := range c.Status.Conditions {
				got = append(got, condition.Type+"="+string(condition.Status)+"/"+condition.Reason)
				if condition.ObservedGeneration != 3 {
					t.Errorf("%s speaks of generation %d", condition.Type, condition.ObservedGeneration)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if c.Status.Phase != test.phase {
				t.Errorf("phase %q, want %q", c.Status.Phase, test.phase)
			}
			before := c.Status.DeepCopy()
			o.Now = at().Add(time.Hour)
			kind.Conclude(c, o, nil, nil)
			if diff := cmp.Diff(before, &c.Status); diff != "" {
				t.Errorf("the same facts an hour later change the status: %s", diff)
			}
		})
	}
}
