// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

func TestANodeSetSaysWhoWaitsForTheDisruptionBudget(t *testing.T) {
	const text = "checks have taken 3 of 30 workers out of service, and --max-nodes-drained-by-checks allows 3; 2 more wait to be taken out: w-[4,7]"
	waiting := budget.Status{Known: true, Waiting: []string{"w-4", "w-7"}, Out: 3, Workers: 30, Limit: 3}
	nobody := budget.Status{Known: true, Out: 1, Workers: 30, Limit: 3}
	for name, c := range map[string]struct {
		before      metav1.ConditionStatus
		drainBudget budget.Status
		want        string
		event       bool
	}{
		"nobody ever waited":                      {drainBudget: nobody},
		"somebody begins to wait":                 {drainBudget: waiting, want: "True LimitReached " + text, event: true},
		"somebody waits again":                    {before: metav1.ConditionFalse, drainBudget: waiting, want: "True LimitReached " + text, event: true},
		"somebody waits on":                       {before: metav1.ConditionTrue, drainBudget: waiting, want: "True LimitReached " + text},
		"nobody waits any more":                   {before: metav1.ConditionTrue, drainBudget: nobody, want: "False WithinLimit no worker waits to be drained by a check"},
		"after a restart nobody knows who waits":  {before: metav1.ConditionTrue, drainBudget: budget.Status{}},
		"a NodeSet without workers and condition": {drainBudget: budget.Status{Known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &slinkyv1beta1.NodeSet{}
			if c.before != "" {
				n.Status.Conditions = []metav1.Condition{{Type: slinkyv1beta1.ConditionDrainsByChecksPaused, Status: c.before}}
			}
			var out reconcile.Report
			drainsPaused(n, c.drainBudget, &out)
			got := ""
			for _, said := range out.Conditions {
				got += fmt.Sprintf("%s %s %s", said.Status, said.Reason, said.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			if (len(out.Events) == 1) != c.event || c.event && (out.Events[0].Type != "Warning" || out.Events[0].Note != text) {
				t.Errorf("the events are %+v", out.Events)
			}
		})
	}
}

func TestMetricsOfNodeSets(t *testing.T) {
	scheme := runtime.NewScheme()
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	n := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "gpu"}}
	n.Status.Replicas = 40
	n.Status.OutOfService = []slinkyv1beta1.NodeSetOutOfService{{Reason: "FailedCheck", Count: 4}, {Reason: "Maintenance", Count: 2}}
	quiet := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "cpu"}}
	budgets := budget.New(health.DrainLimit{Number: 10, Percent: true}, clock.RealClock{})
	budgets.Ask(budget.Request{
		NodeSet: types.NamespacedName{Namespace: "slurm", Name: "gpu"}, By: "test", Workers: []budget.Worker{{Node: "gpu-0"}, {Node: "gpu-1"}}, Wanted: []string{"gpu-0", "gpu-1"},
	})
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(Metrics(fake.NewClientBuilder().WithScheme(scheme).WithObjects(n, quiet).Build(), budgets)); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got = append(got, fmt.Sprintf("%s %s %v", family.GetName(), strings.Join(labels, " "), m.GetGauge().GetValue()))
		}
	}
	want := []string{
		"coxswain_nodes_drained_by_checks_limit slurm cpu 1",
		"coxswain_nodes_drained_by_checks_limit slurm gpu 4",
		"coxswain_nodes_out_of_service slurm gpu FailedCheck 4",
		"coxswain_nodes_out_of_service slurm gpu Maintenance 2",
		"coxswain_nodes_waiting_for_brake slurm cpu 0",
		"coxswain_nodes_waiting_for_brake slurm gpu 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}
