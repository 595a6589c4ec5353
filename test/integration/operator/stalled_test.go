// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestMistakesStallAndAreHealedByReverting(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	o.Settle()
	before := operator.Get[corev1.ConfigMap](o, "demo-config").Data
	stateful := operator.Get[appsv1.StatefulSet](o, "demo-controller").ResourceVersion
	o.Writes.Reset()

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "MaxNodeCount=7\nClusterName=mine" })
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ExtraConf, n.Spec.Replicas = "Gres=gpu:8 Weight=1 Weight=2", new(int32(5))
	})
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
		l.Spec.Users = append(l.Spec.Users, slinkyv1beta1.User{Name: "bob", UID: 1000})
	})
	message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	if want := "spec.extraConf: line 2: ClusterName: it is set by the operator"; !strings.HasPrefix(message, want) {
		t.Errorf("%q, want %q…", message, want)
	}
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, "InvalidSpec")
	o.Settle()
	for _, w := range o.Writes.All() {
		if !strings.HasSuffix(w.Path, "/status") {
			t.Errorf("something is applied in spite of mistakes: %v", w)
		}
	}
	if diff := cmp.Diff(before, operator.Get[corev1.ConfigMap](o, "demo-config").Data); diff != "" {
		t.Error(diff)
	}
	if len(o.Workers()) != 2 {
		t.Errorf("there are %d workers", len(o.Workers()))
	}
	expectEvent(t, o, "Controller", "Warning", "InvalidSpec", "ClusterName")

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "" })
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ExtraConf, n.Spec.Replicas = "Gres=gpu:8 Weight=10", new(int32(2))
	})
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Users = l.Spec.Users[:1] })
	o.ExpectReady()
	if got := operator.Get[appsv1.StatefulSet](o, "demo-controller").ResourceVersion; got != stateful {
		t.Error("slurmctld's StatefulSet was written although nothing has changed in the end")
	}
}

// expectEvent waits for an event about an object of a kind.
func expectEvent(t *testing.T, o *operator.Operator, kind, severity, reason, text string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		var list eventsv1.EventList
		if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if e.Regarding.Kind == kind && e.Type == severity && e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
			seen = append(seen, fmt.Sprintf("%s %s %s: %s", e.Regarding.Kind, e.Type, e.Reason, e.Note))
		}
		return fmt.Errorf("no event %s about a %s among\n%s", reason, kind, strings.Join(seen, "\n"))
	})
}

func TestWhatTheServerRefusesStallsToo(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.Template.Spec.Raw = []byte(`{"hostname":"gpu-","restartPolicy":"Sometimes"}`)
		n.Spec.Replicas = new(int32(9))
	})
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	if !strings.Contains(message, "restartPolicy") {
		t.Error(message)
	}
	o.Settle()
	o.Writes.Reset()
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(8)) })
	o.Settle()
	// One for the new generation, and one for the new status.
	if refused := o.Writes.Of("pods"); len(refused) > 2 {
		t.Errorf("%d pods are asked for, although they are all alike: %v", len(refused), refused)
	}
}
