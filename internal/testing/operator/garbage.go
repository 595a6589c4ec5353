// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// KindsOfACluster returns all that a cluster may be made of.
func KindsOfACluster() []client.ObjectList {
	return []client.ObjectList{
		&slinkyv1beta1.AccountingList{}, &slinkyv1beta1.ControllerList{}, &slinkyv1beta1.RestApiList{}, &slinkyv1beta1.LoginSetList{},
		&slinkyv1beta1.NodeSetList{}, &slinkyv1beta1.TokenList{}, &nebiusv1.SlurmClusterList{}, &nebiusv1alpha1.NodeSetList{},
		&appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &appsv1.ControllerRevisionList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&corev1.SecretList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &discoveryv1.EndpointSliceList{},
	}
}

// ObjectsOf lists the objects of some kinds in the test's namespace.
func (o *Operator) ObjectsOf(kinds ...client.ObjectList) []client.Object {
	o.t.Helper()
	var out []client.Object
	for _, list := range kinds {
		if err := o.User.List(o.t.Context(), list, client.InNamespace(o.Namespace)); err != nil {
			o.t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			out = append(out, item.(client.Object))
			return nil
		})
	}
	return out
}

// Demolish deletes an object like a user, with a kubelet that ends its pods.
func (o *Operator) Demolish(obj client.Object) {
	o.t.Helper()
	if err := o.User.Delete(o.t.Context(), obj, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		o.t.Fatal(err)
	}
}

// Collect does what Kubernetes' garbage collector does: it deletes what no longer has an owner. It returns what is left
// of what had an owner, and how much it has deleted.
func (o *Operator) Collect() (left []string, garbage int) {
	o.t.Helper()
	all := o.ObjectsOf(KindsOfACluster()...)
	owners := map[types.UID]bool{}
	for _, obj := range all {
		owners[obj.GetUID()] = true
	}
	for _, obj := range all {
		switch refs := obj.GetOwnerReferences(); {
		case len(refs) == 0:
		case slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return owners[r.UID] }):
			left = append(left, fmt.Sprintf("%T %s", obj, obj.GetName()))
		default:
			o.Demolish(obj)
			garbage++
		}
	}
	return left, garbage
}

// AwaitCollected collects garbage until there is none and nothing is written any more.
func (o *Operator) AwaitCollected() {
	o.t.Helper()
	for range 10 {
		apiserver.Eventually(o.t, func() error {
			if _, garbage := o.Collect(); garbage > 0 {
				return fmt.Errorf("%d objects are still collected", garbage)
			}
			return nil
		})
		if o.Settle() == 0 {
			return
		}
	}
	o.t.Fatal("the operator makes what is collected anew")
}
