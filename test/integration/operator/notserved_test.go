// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAKindThatNothingActsOnSaysSo(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "slurmcluster")
	operator.Create[nebiusv1alpha1.ActiveCheck](o, `{metadata: {name: a}, spec: {slurmClusterRefName: demo}}`)
	operator.Create[nebiusv1alpha1.JailedConfig](o, `{metadata: {name: a}, spec: {configMap: {name: a}}}`)
	operator.Create[nebiusv1alpha1.NodeConfigurator](o, `{metadata: {name: a}}`)
	operator.Create[nebiusv1alpha1.NodeSetPowerState](o, `{metadata: {name: a}, spec: {nodeSetRef: a}}`)

	const ready, stalled = nebiusv1alpha1.ConditionReady, nebiusv1alpha1.ConditionStalled
	const want = "spec: this version stores objects of kind %s and does not act on them"
	expect := func(kind, message string) {
		t.Helper()
		if message != fmt.Sprintf(want, kind) {
			t.Errorf("%s says %q", kind, message)
		}
		apiserver.Eventually(t, func() error { return told(t, o, kind) })
	}
	expect("ActiveCheck", operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "a", ready, metav1.ConditionFalse, nebiusv1alpha1.ReasonNotServed))
	expect("JailedConfig", operator.ExpectCondition[nebiusv1alpha1.JailedConfig](o, "a", ready, metav1.ConditionFalse, nebiusv1alpha1.ReasonNotServed))
	expect("NodeConfigurator", operator.ExpectCondition[nebiusv1alpha1.NodeConfigurator](o, "a", ready, metav1.ConditionFalse, nebiusv1alpha1.ReasonNotServed))
	expect("NodeSetPowerState", operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](o, "a", ready, metav1.ConditionFalse, nebiusv1alpha1.ReasonNotServed))

	// A change is answered, too, or "kubectl wait" for the new generation would wait.
	operator.Change(o, "a", func(p *nebiusv1alpha1.NodeSetPowerState) { p.Spec.ActiveNodes = []int32{1} })
	operator.ExpectCondition[nebiusv1alpha1.NodeSetPowerState](o, "a", stalled, metav1.ConditionTrue, nebiusv1alpha1.ReasonNotServed)
	operator.Change(o, "a", func(c *nebiusv1alpha1.ActiveCheck) { c.Spec.SlurmClusterRefName = "other" })
	operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "a", stalled, metav1.ConditionTrue, nebiusv1alpha1.ReasonNotServed)
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

// told says whether there is an event about the object of a kind.
func told(t *testing.T, o *operator.Operator, kind string) error {
	t.Helper()
	var list eventsv1.EventList
	if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Reason == nebiusv1alpha1.ReasonNotServed && e.Type == "Warning" && strings.Contains(e.Note, kind) {
			return nil
		}
	}
	return fmt.Errorf("no event among %d is about the %s", len(list.Items), kind)
}
