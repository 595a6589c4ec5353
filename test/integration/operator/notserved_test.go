// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAJailedConfigThatNothingActsOnSaysSo(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "slurmcluster")
	operator.Create[nebiusv1alpha1.JailedConfig](o, `{metadata: {name: a}, spec: {configMap: {name: a}}}`)

	const ready, stalled = nebiusv1alpha1.ConditionReady, nebiusv1alpha1.ConditionStalled
	got := operator.ExpectCondition[nebiusv1alpha1.JailedConfig](o, "a", ready, metav1.ConditionFalse, nebiusv1alpha1.ReasonNotServed)
	if !strings.Contains(got, "runs sconfigcontroller, which writes the files into the jail") {
		t.Errorf("JailedConfig says %q", got)
	}
	apiserver.Eventually(t, func() error { return told(t, o) })

	// A change is answered, too, or "kubectl wait" for the new generation would wait.
	operator.Change(o, "a", func(c *nebiusv1alpha1.JailedConfig) { c.Spec.ConfigMap.Name = "b" })
	operator.ExpectCondition[nebiusv1alpha1.JailedConfig](o, "a", stalled, metav1.ConditionTrue, nebiusv1alpha1.ReasonNotServed)
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

// told returns an error unless there is an event about the JailedConfig.
func told(t *testing.T, o *operator.Operator) error {
	t.Helper()
	var list eventsv1.EventList
	if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Regarding.Kind == "JailedConfig" && e.Reason == nebiusv1alpha1.ReasonNotServed && e.Type == "Warning" {
			return nil
		}
	}
	return fmt.Errorf("no event among %d is about the JailedConfig", len(list.Items))
}

// TestTheStatusOfAJailedConfigIsThatOfSconfigcontroller has that program write something about an object.
func TestTheStatusOfAJailedConfigIsThatOfSconfigcontroller(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "slurmcluster")
	operator.Create[nebiusv1alpha1.JailedConfig](o, `{metadata: {name: a}, spec: {configMap: {name: a}}}`)
	operator.ExpectCondition[nebiusv1alpha1.JailedConfig](o, "a", nebiusv1alpha1.ConditionReady, metav1.ConditionFalse, nebiusv1alpha1.ReasonNotServed)
	o.Settle()
	var c nebiusv1alpha1.JailedConfig
	if err := o.User.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "a"}, &c); err != nil {
		t.Fatal(err)
	}
	c.Status.Conditions = nil
	for _, kind := range []string{nebiusv1alpha1.ConditionFilesWritten, nebiusv1alpha1.ConditionReady} {
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: nebiusv1alpha1.ReasonSuccess, ObservedGeneration: c.Generation + 1})
	}
	if err := o.User.Status().Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	o.Settle()
	operator.Change(o, "a", func(c *nebiusv1alpha1.JailedConfig) { c.Spec.ConfigMap.Name = "b" })
	o.Settle()
	operator.ExpectCondition[nebiusv1alpha1.JailedConfig](o, "a", nebiusv1alpha1.ConditionReady, metav1.ConditionTrue, nebiusv1alpha1.ReasonSuccess)
}

// TestAJailedConfigOfANamespaceWhoseClusterHasAJailIsLeftToSconfigcontroller has that cluster go, too.
func TestAJailedConfigOfANamespaceWhoseClusterHasAJailIsLeftToSconfigcontroller(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "slurmcluster")
	operator.Create[nebiusv1.SlurmCluster](o, `{metadata: {name: demo}, spec: {volumeSources: [{name: jail, emptyDir: {}}]}}`)
	o.Settle()
	operator.Create[nebiusv1alpha1.JailedConfig](o, `{metadata: {name: a}, spec: {configMap: {name: a}}}`)
	o.Settle()
	if c := operator.Get[nebiusv1alpha1.JailedConfig](o, "a"); len(c.Status.Conditions) > 0 {
		t.Errorf("the operator says %+v", c.Status.Conditions)
	}
	operator.Change(o, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.SConfigController.Node.Size = new(int32(0)) })
	operator.ExpectCondition[nebiusv1alpha1.JailedConfig](o, "a", nebiusv1alpha1.ConditionReady, metav1.ConditionFalse, nebiusv1alpha1.ReasonNotServed)
}
