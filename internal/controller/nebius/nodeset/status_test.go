// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/coxswain-hpc/coxswain/internal/reconcile"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestStatus(t *testing.T) {
	cluster := &nebiusv1.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "c"}}
	resting := cluster.DeepCopy()
	resting.Spec.Maintenance = nebiusv1.MaintenanceDownscale
	composed := func(ready int32) *slinkyv1beta1.NodeSet {
		out := &slinkyv1beta1.NodeSet{Status: slinkyv1beta1.NodeSetStatus{Desired: 2, UpdatedReplicas: ready, ReadyReplicas: ready, Selector: "a=b"}}
		out.Name = "c-n"
		condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "PodsNotReady", Message: "1 of 2 pods are ready"}
		if ready == 2 {
			condition = metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", Message: "2 of 2 pods are ready"}
		}
		out.Status.Conditions = []metav1.Condition{condition}
		return out
	}
	asleep := composed(2)
	asleep.Spec.Replicas, asleep.Status.Desired, asleep.Status.UpdatedReplicas, asleep.Status.ReadyReplicas = new(int32(0)), 0, 0, 0
	for name, test := range map[string]struct {
		facts    facts
		static   string
		dynamic  string
		phase    nebiusv1alpha1.NodeSetPhase
		replicas int32
		want     string
	}{
		"a NodeSet without any cluster waits for one": {
			phase: nebiusv1alpha1.NodeSetPending,
			want:  "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=Unknown/SetUpCondition StatefulSetUpdated=Unknown/SetUpCondition PodsReady=Unknown/SetUpCondition StatefulSetTerminated=Unknown/SetUpCondition SpecEffective=True/AllFieldsEffective Ready=False/ReferenceNotFound Reconciling=True/ReferenceNotFound Stalled=False/Reconciled",
		},
		"a NodeSet of a cluster that does not exist waits for it": {
			facts: facts{owner: "c"}, phase: nebiusv1alpha1.NodeSetPending,
			want: "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=Unknown/SetUpCondition StatefulSetUpdated=Unknown/SetUpCondition PodsReady=Unknown/SetUpCondition StatefulSetTerminated=Unknown/SetUpCondition SpecEffective=True/AllFieldsEffective Ready=False/ReferenceNotFound Reconciling=True/ReferenceNotFound Stalled=False/Reconciled",
		},
		"some workers ready": {
			facts: facts{owner: "c", cluster: cluster, composed: composed(1)}, phase: nebiusv1alpha1.NodeSetProvisioning, replicas: 1,
			want: "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=True/NodeSetReady StatefulSetUpdated=False/NodeSetNotReady PodsReady=False/NodeSetNotReady StatefulSetTerminated=False/WorkersEnabled SpecEffective=True/AllFieldsEffective Ready=False/PodsNotReady Reconciling=True/PodsNotReady Stalled=False/Reconciled",
		},
		"all workers ready": {
			facts: facts{owner: "c", cluster: cluster, composed: composed(2)}, phase: nebiusv1alpha1.NodeSetReady, replicas: 2,
			want: "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=True/NodeSetReady StatefulSetUpdated=True/NodeSetReady PodsReady=True/NodeSetReady StatefulSetTerminated=False/WorkersEnabled SpecEffective=True/AllFieldsEffective Ready=True/Available Reconciling=False/Reconciled Stalled=False/Reconciled",
		},
		"a text for nodes that not all have": {
			facts: facts{owner: "c", cluster: cluster, composed: composed(1)}, dynamic: "rack=1", phase: nebiusv1alpha1.NodeSetProvisioning, replicas: 1,
			want: "ConfigDynamicUpdated=False/NodeSetNotReady ConfigUpdated=True/NodeSetReady StatefulSetUpdated=False/NodeSetNotReady PodsReady=False/NodeSetNotReady StatefulSetTerminated=False/WorkersEnabled SpecEffective=True/AllFieldsEffective Ready=False/PodsNotReady Reconciling=True/PodsNotReady Stalled=False/Reconciled",
		},
		"a text for nodes that all have": {
			facts: facts{owner: "c", cluster: cluster, composed: composed(2)}, dynamic: "rack=1", phase: nebiusv1alpha1.NodeSetReady, replicas: 2,
			want: "ConfigDynamicUpdated=True/NodeSetReady ConfigUpdated=True/NodeSetReady StatefulSetUpdated=True/NodeSetReady PodsReady=True/NodeSetReady StatefulSetTerminated=False/WorkersEnabled SpecEffective=True/AllFieldsEffective Ready=True/Available Reconciling=False/Reconciled Stalled=False/Reconciled",
		},
		"a cluster at rest": {
			facts: facts{owner: "c", cluster: resting, composed: composed(2)}, phase: nebiusv1alpha1.NodeSetTerminating, replicas: 2,
			want: "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=True/NodeSetReady StatefulSetUpdated=True/NodeSetReady PodsReady=True/NodeSetReady StatefulSetTerminated=True/Maintenance SpecEffective=True/AllFieldsEffective Ready=True/Available Reconciling=False/Reconciled Stalled=False/Reconciled",
		},
		"a cluster that comes back": {
			facts: facts{owner: "c", cluster: cluster, composed: asleep}, phase: nebiusv1alpha1.NodeSetProvisioning,
			want: "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=True/NodeSetReady StatefulSetUpdated=True/NodeSetReady PodsReady=False/NodeSetNotReady StatefulSetTerminated=False/WorkersEnabled SpecEffective=True/AllFieldsEffective Ready=False/Waiting Reconciling=True/Waiting Stalled=False/Reconciled",
		},
		"a mistake while workers run": {
			facts: facts{owner: "c", cluster: cluster, composed: composed(2)}, static: "oops", phase: nebiusv1alpha1.NodeSetReady, replicas: 2,
			want: "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=True/NodeSetReady StatefulSetUpdated=True/NodeSetReady PodsReady=True/NodeSetReady StatefulSetTerminated=False/WorkersEnabled SpecEffective=True/AllFieldsEffective Ready=False/InvalidSpec Reconciling=False/Reconciled Stalled=True/InvalidSpec",
		},
		"a field without effect": {
			facts: facts{owner: "c", cluster: cluster}, static: "State=CLOUD", phase: nebiusv1alpha1.NodeSetPending,
			want: "ConfigDynamicUpdated=Unknown/SetUpCondition ConfigUpdated=Unknown/SetUpCondition StatefulSetUpdated=Unknown/SetUpCondition PodsReady=Unknown/SetUpCondition StatefulSetTerminated=Unknown/SetUpCondition SpecEffective=False/FieldsNotEffective Ready=False/Waiting Reconciling=True/Waiting Stalled=False/Reconciled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := &nebiusv1alpha1.NodeSet{}
			set.Name, set.Namespace, set.Generation = "n", "slurm", 7
			set.Spec.NodeConfig.Static, set.Spec.NodeConfig.Dynamic = test.static, test.dynamic
			test.facts.set = set
			kind := (&reconciler{Base: reconcile.Base{Recorder: events.NewFakeRecorder(10)}}).kind()
			kind.Conclude(set, reconcile.Outcome[facts, *plan, struct{}]{
				Facts: test.facts, Plan: decide(test.facts), Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			}, nil, nil)
			var got []string
			for _, c := range set.Status.Conditions {
				got = append(got, c.Type+"="+string(c.Status)+"/"+c.Reason)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			if set.Status.Phase != test.phase || set.Status.Replicas != test.replicas || set.Status.ObservedGeneration != 7 {
				t.Errorf("status %+v", set.Status)
			}
		})
	}
}
