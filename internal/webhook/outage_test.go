// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// asked is how often Slurm is asked for its nodes while the API server is away, in addition to the time in which that starts.
const asked = 50

// withWorkers runs the operator with two workers, on one of which a job runs, and the webhook beside it.
func withWorkers(t *testing.T) (*operator.Operator, *scene) {
	t.Helper()
	o := operator.Start(t)
	s := startFor(t, o.Server)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.RestApi](o, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: 2}}`)
	expectWorkers(t, o, 2)
	o.RunWorkloads()
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	apiserver.Eventually(t, func() error {
		if n := operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.SlurmAllocated; n != 1 {
			return fmt.Errorf("%d workers are allocated", n)
		}
		return nil
	})
	o.Settle()
	return o, s
}

func expectWorkers(t *testing.T, o *operator.Operator, want int) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := len(o.Workers()); got != want {
			return fmt.Errorf("there are %d workers, want %d", got, want)
		}
		return nil
	})
}

// identities returns the pods by name, so that a pod that was made anew shows.
func identities(o *operator.Operator) map[string]string {
	out := map[string]string{}
	for _, p := range o.Workers() {
		out[p.Name] = string(p.UID)
	}
	return out
}

func TestNothingIsWrittenOrKilledBecauseTheAPIServerWasAway(t *testing.T) {
	o, s := withWorkers(t)
	before := identities(o)
	o.Writes.Reset()
	o.Slurm.ResetCounters()
	o.Interrupt(t, func() {
		apiserver.Eventually(t, func() error {
			if n := o.Slurm.Counters().Calls["GET nodes"]; n < asked {
				return fmt.Errorf("the Slurm cache has asked Slurm %d times", n)
			}
			return nil
		})
	})
	o.Settle()

	for _, w := range o.Writes.All() {
		// The library that renews the certificate writes its authority again, which is no change.
		if !strings.Contains(w.Path, "/admissionregistration.k8s.io/") {
			t.Errorf("the operator has written: %s", w)
		}
	}
	if diff := cmp.Diff(before, identities(o)); diff != "" {
		t.Errorf("the workers are others (-before +after):\n%s", diff)
	}
	if told := o.Slurm.Writes(); len(told) > 0 {
		t.Errorf("Slurm was told something: %+v", told)
	}

	// Both go on.
	apiserver.Eventually(t, s.served)
	s.called()
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(3)) })
	expectWorkers(t, o, 3)
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	if errs := o.Errors(); len(errs) > 0 {
		t.Logf("the operator said: %v", errs)
	}
}

func TestWorkersAreMadeAndBoundWhileTheWebhookIsDown(t *testing.T) {
	o, s := withWorkers(t)
	s.stop()
	node := o.KubeNode("a")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(3)) })
	expectWorkers(t, o, 3)
	o.Bind("w-2", node)
	if bound := operator.Get[corev1.Pod](o, "w-2").Spec.NodeName; bound != node {
		t.Errorf("the worker is bound to %q", bound)
	}
}
