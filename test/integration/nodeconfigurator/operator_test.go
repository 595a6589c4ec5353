// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeconfigurator

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestANodeConfiguratorBecomesADaemonSet(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "nodeconfigurator")
	operator.Create[nebiusv1alpha1.NodeConfigurator](o, `{metadata: {name: nc}}`)
	const ready, stalled = nebiusv1alpha1.ConditionReady, nebiusv1alpha1.ConditionStalled
	o.Settle()
	o.RunWorkloads()
	if got := operator.ExpectCondition[nebiusv1alpha1.NodeConfigurator](o, "nc", ready, metav1.ConditionTrue, "Available"); got != "pods: rolled out on 2 of 2 nodes" {
		t.Errorf("it says %q", got)
	}
	n := operator.Get[nebiusv1alpha1.NodeConfigurator](o, "nc")
	if n.Status.ObservedGeneration != n.Generation || n.Status.UpdateStatus != nebiusv1alpha1.UpdateStatusSucceeded {
		t.Errorf("the status is %+v", n.Status)
	}
	set := operator.Get[appsv1.DaemonSet](o, "nc-ds")
	if !metav1.IsControlledBy(set, n) || set.Spec.Template.Spec.ServiceAccountName != "nc-rebooter" {
		t.Fatalf("the DaemonSet is %+v", set)
	}
	if !operator.Exists[corev1.ServiceAccount](o, "nc-rebooter") {
		t.Error("the ServiceAccount is missing")
	}

	// At rest nothing is written, also not by another operator.
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)

	// A ServiceAccount of the user's takes the place of the made one.
	operator.Change(o, "nc", func(c *nebiusv1alpha1.NodeConfigurator) { c.Spec.Rebooter.ServiceAccountName = "nc-sa" })
	apiserver.Eventually(t, func() error {
		set := operator.Get[appsv1.DaemonSet](o, "nc-ds")
		if set.Spec.Template.Spec.ServiceAccountName != "nc-sa" || operator.Exists[corev1.ServiceAccount](o, "nc-rebooter") {
			return fmt.Errorf("the pods run as %s", set.Spec.Template.Spec.ServiceAccountName)
		}
		return nil
	})

	// A mistake changes nothing that runs, and is reported.
	generation := operator.Get[appsv1.DaemonSet](o, "nc-ds").Generation
	operator.Change(o, "nc", func(c *nebiusv1alpha1.NodeConfigurator) { c.Spec.ShareProcessNamespace = true })
	got := operator.ExpectCondition[nebiusv1alpha1.NodeConfigurator](o, "nc", stalled, metav1.ConditionTrue, nebiusv1alpha1.ReasonInvalidSpec)
	if !strings.HasPrefix(got, "spec.shareProcessNamespace: ") {
		t.Errorf("it says %q", got)
	}
	if after := operator.Get[appsv1.DaemonSet](o, "nc-ds").Generation; after != generation {
		t.Error("the DaemonSet has changed")
	}
	apiserver.Eventually(t, func() error {
		var list eventsv1.EventList
		if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == "NodeConfigurator" && e.Type == "Warning" && strings.HasPrefix(e.Note, "spec.shareProcessNamespace: ") {
				return nil
			}
		}
		return fmt.Errorf("none of %d events tells of it", len(list.Items))
	})
	if errs := o.Errors(); len(errs) > 0 {
		t.Errorf("the operator logged errors: %v", errs)
	}
}
