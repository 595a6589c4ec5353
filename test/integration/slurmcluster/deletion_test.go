// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	o.RunCluster()
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

func TestASlurmClusterIsDeletedInAnyOrder(t *testing.T) {
	t.Parallel()
	type step func(*operator.Operator)
	cluster := func(o *operator.Operator) { operator.Delete[nebiusv1.SlurmCluster](o, "demo") }
	nodeSet := func(o *operator.Operator) { operator.Delete[nebiusv1alpha1.NodeSet](o, "gpu") }
	token := func(o *operator.Operator) { operator.Delete[slinkyv1beta1.Token](o, "portal") }
	jobs, collect := (*operator.Operator).RunJobs, (*operator.Operator).AwaitCollected
	tests := []struct {
		name  string
		steps []step
	}{
		{"all at once", []step{cluster, nodeSet, token}},
		{"the SlurmCluster, then its NodeSet", []step{token, cluster, collect, nodeSet}},
		{"the NodeSet, then its SlurmCluster", []step{nodeSet, collect, cluster, collect, token}},
		{"with jobs on its workers", []step{jobs, cluster, collect, nodeSet, token}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := composite(t)
			for _, step := range tt.steps {
				step(o)
			}
			o.AwaitCollected()
			var left []string
			for _, obj := range o.ObjectsOf(operator.KindsOfACluster()...) {
				if name := obj.GetName(); name != "demo-login-ssh-host-keys" && name != "kube-root-ca.crt" {
					left = append(left, fmt.Sprintf("%T %s", obj, name))
				}
			}
			if len(left) > 0 {
				t.Errorf("left behind: %s", strings.Join(left, ", "))
			}
			o.ExpectNoErrors()
		})
	}
}

func TestAComponentThatIsDeletedFromUnderItsSlurmClusterComesBack(t *testing.T) {
	t.Parallel()
	o := composite(t)
	for _, obj := range o.ObjectsOf(&slinkyv1beta1.AccountingList{}, &slinkyv1beta1.ControllerList{}, &slinkyv1beta1.RestApiList{},
		&slinkyv1beta1.LoginSetList{}, &slinkyv1beta1.NodeSetList{}) {
		before := obj.GetUID()
		o.Demolish(obj)
		apiserver.Eventually(t, func() error {
			err := o.User.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
			if err == nil && obj.GetUID() == before {
				err = fmt.Errorf("it is still the old one, with finalizers %v", obj.GetFinalizers())
			}
			return err
		})
	}
	operator.Delete[nebiusv1.SlurmCluster](o, "demo")
	o.AwaitCollected()
	o.ExpectNoErrors()
}

// A namespace that is deleted takes no new objects, and loses the old ones kind by kind, in an order that is not defined.
func TestANamespaceIsDeletedWhole(t *testing.T) {
	t.Parallel()
	for _, reversed := range []bool{false, true} {
		t.Run(fmt.Sprintf("reversed %t", reversed), func(t *testing.T) {
			t.Parallel()
			o := composite(t)
			o.RunJobs()
			if err := o.User.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}); err != nil {
				t.Fatal(err)
			}
			kinds := append(operator.KindsOfACluster(), &corev1.PersistentVolumeClaimList{})
			if reversed {
				slices.Reverse(kinds)
			}
			apiserver.Eventually(t, func() error { return deleteAll(t, o, kinds) })
			o.Settle()
			o.ExpectNoErrors()
		})
	}
}

// deleteAll does what the namespace controller does.
func deleteAll(t *testing.T, o *operator.Operator, kinds []client.ObjectList) error {
	t.Helper()
	for _, list := range kinds {
		for _, obj := range o.ObjectsOf(list) {
			o.Demolish(obj)
		}
	}
	if left := o.ObjectsOf(kinds...); len(left) > 0 {
		return fmt.Errorf("%d objects are left, first %T %s with finalizers %v", len(left), left[0], left[0].GetName(), left[0].GetFinalizers())
	}
	return context.Cause(t.Context())
}
