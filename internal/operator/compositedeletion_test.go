// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const (
	aSlurmCluster = `{metadata: {name: demo}, spec: {clusterType: cpu, slurmNodes: {login: {size: 1},
		accounting: {enabled: true, embeddedDB: {enabled: true, storage: {size: 1Gi}}}}}}`
	aNebiusNodeSet = `{metadata: {name: gpu}, spec: {clusterName: demo, replicas: 2}}`
	// Generating an RSA key takes seconds.
	hostKeys = `{metadata: {name: demo-login-ssh-host-keys}, stringData: {ssh_host_rsa_key: a, ssh_host_rsa_key.pub: b, ssh_host_ed25519_key: c,
		ssh_host_ed25519_key.pub: d, ssh_host_ecdsa_key: e, ssh_host_ecdsa_key.pub: f}}`
	aPeriodicToken = `{metadata: {name: portal}, spec: {username: portal, jwtKeyRef: {name: demo-auth-jwt, key: jwt.key}}}`
)

// composite creates a SlurmCluster, a NodeSet of its group and a Token, and lets them run.
func composite(t *testing.T) *operator.Operator {
	t.Helper()
	o := operator.Start(t)
	operator.Create[corev1.Secret](o, hostKeys)
	operator.Create[nebiusv1.SlurmCluster](o, aSlurmCluster)
	operator.Create[nebiusv1alpha1.NodeSet](o, aNebiusNodeSet)
	operator.Create[slinkyv1beta1.Token](o, aPeriodicToken)
	rise(t, o)
	apiserver.Eventually(t, func() error {
		c := operator.Get[nebiusv1.SlurmCluster](o, "demo")
		if ready := meta.FindStatusCondition(c.Status.Conditions, "Ready"); ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("the SlurmCluster is not ready: %v", c.Status.Conditions)
		}
		return nil
	})
	operator.ExpectCondition[slinkyv1beta1.Token](o, "portal", "Ready", metav1.ConditionTrue, slinkyv1beta1.ReasonTokenIssued)
	return o
}

// kindsOfACluster are all that a cluster may be made of.
func kindsOfACluster() []client.ObjectList {
	return []client.ObjectList{
		&slinkyv1beta1.AccountingList{}, &slinkyv1beta1.ControllerList{}, &slinkyv1beta1.RestApiList{}, &slinkyv1beta1.LoginSetList{},
		&slinkyv1beta1.NodeSetList{}, &slinkyv1beta1.TokenList{}, &nebiusv1.SlurmClusterList{}, &nebiusv1alpha1.NodeSetList{},
		&appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &appsv1.ControllerRevisionList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
	}
}

// objectsOf lists the objects of some kinds in the test's namespace.
func objectsOf(t *testing.T, o *operator.Operator, kinds ...client.ObjectList) []client.Object {
	t.Helper()
	var out []client.Object
	for _, list := range kinds {
		if err := o.User.List(t.Context(), list, client.InNamespace(o.Namespace)); err != nil {
			t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			out = append(out, item.(client.Object))
			return nil
		})
	}
	return out
}

// demolish deletes an object as a user does who has a kubelet to end its pods.
func demolish(t *testing.T, o *operator.Operator, obj client.Object) {
	t.Helper()
	if err := o.User.Delete(t.Context(), obj, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

func TestASlurmClusterIsDeletedInAnyOrder(t *testing.T) {
	t.Parallel()
	type step func(*testing.T, *operator.Operator)
	cluster := func(_ *testing.T, o *operator.Operator) { operator.Delete[nebiusv1.SlurmCluster](o, "demo") }
	nodeSet := func(_ *testing.T, o *operator.Operator) { operator.Delete[nebiusv1alpha1.NodeSet](o, "gpu") }
	token := func(_ *testing.T, o *operator.Operator) { operator.Delete[slinkyv1beta1.Token](o, "portal") }
	tests := []struct {
		name  string
		steps []step
	}{
		{"all at once", []step{cluster, nodeSet, token}},
		{"the SlurmCluster, then its NodeSet", []step{token, cluster, awaitCollected, nodeSet}},
		{"the NodeSet, then its SlurmCluster", []step{nodeSet, awaitCollected, cluster, awaitCollected, token}},
		{"with jobs on its workers", []step{runJobs, cluster, awaitCollected, nodeSet, token}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := composite(t)
			for _, step := range tt.steps {
				step(t, o)
			}
			awaitCollected(t, o)
			var left []string
			for _, obj := range objectsOf(t, o, kindsOfACluster()...) {
				if name := obj.GetName(); name != "demo-login-ssh-host-keys" && name != "kube-root-ca.crt" {
					left = append(left, fmt.Sprintf("%T %s", obj, name))
				}
			}
			if len(left) > 0 {
				t.Errorf("left behind: %s", strings.Join(left, ", "))
			}
			noErrors(t, o)
		})
	}
}

// awaitCollected collects garbage until there is none and nobody writes any more.
func awaitCollected(t *testing.T, o *operator.Operator) {
	t.Helper()
	for range 10 {
		apiserver.Eventually(t, func() error {
			if _, garbage := collect(t, o); garbage > 0 {
				return fmt.Errorf("%d objects are still collected", garbage)
			}
			return nil
		})
		if o.Settle() == 0 {
			return
		}
	}
	t.Fatal("the operator makes what is collected anew")
}

func noErrors(t *testing.T, o *operator.Operator) {
	t.Helper()
	for _, line := range o.Errors() {
		// Kubernetes' library says so of an event that comes too late for its namespace.
		if !strings.Contains(line, "Server rejected event") {
			t.Errorf("the operator complained: %s", line)
		}
	}
}

func TestAComponentThatIsDeletedFromUnderItsSlurmClusterComesBack(t *testing.T) {
	t.Parallel()
	o := composite(t)
	for _, obj := range objectsOf(t, o, &slinkyv1beta1.AccountingList{}, &slinkyv1beta1.ControllerList{}, &slinkyv1beta1.RestApiList{},
		&slinkyv1beta1.LoginSetList{}, &slinkyv1beta1.NodeSetList{}) {
		before := obj.GetUID()
		demolish(t, o, obj)
		apiserver.Eventually(t, func() error {
			err := o.User.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
			if err == nil && obj.GetUID() == before {
				err = fmt.Errorf("it is still the old one, with finalizers %v", obj.GetFinalizers())
			}
			return err
		})
	}
	operator.Delete[nebiusv1.SlurmCluster](o, "demo")
	awaitCollected(t, o)
	noErrors(t, o)
}

// A namespace that is deleted takes no new objects, and loses the old ones kind by kind, in an order that nobody promises.
func TestANamespaceIsDeletedWhole(t *testing.T) {
	t.Parallel()
	for _, reversed := range []bool{false, true} {
		t.Run(fmt.Sprintf("reversed %t", reversed), func(t *testing.T) {
			t.Parallel()
			o := composite(t)
			runJobs(t, o)
			if err := o.User.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}); err != nil {
				t.Fatal(err)
			}
			kinds := append(kindsOfACluster(), &corev1.PersistentVolumeClaimList{})
			if reversed {
				slices.Reverse(kinds)
			}
			apiserver.Eventually(t, func() error { return deleteAll(t, o, kinds) })
			o.Settle()
			noErrors(t, o)
		})
	}
}

// deleteAll does what the namespace controller does.
func deleteAll(t *testing.T, o *operator.Operator, kinds []client.ObjectList) error {
	t.Helper()
	for _, list := range kinds {
		for _, obj := range objectsOf(t, o, list) {
			demolish(t, o, obj)
		}
	}
	if left := objectsOf(t, o, kinds...); len(left) > 0 {
		return fmt.Errorf("%d objects are left, first %T %s with finalizers %v", len(left), left[0], left[0].GetName(), left[0].GetFinalizers())
	}
	return context.Cause(t.Context())
}
