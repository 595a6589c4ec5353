// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func testOwner() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "owner", UID: "1"}}
}

func mustIntent(t *testing.T, obj client.Object) intent {
	t.Helper()
	i, err := newIntent(scheme.Scheme, testOwner(), obj, options{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestAnIntentHasWhatWasFilledInAndNothingElse(t *testing.T) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s", ResourceVersion: "7", UID: "u", Generation: 3, Annotations: map[string]string{IntentAnnotation: "old"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}, AllocateLoadBalancerNodePorts: new(false)},
		Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}}},
	}
	i := mustIntent(t, service)
	want := map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{
			"namespace": "a", "name": "s", "annotations": map[string]any{IntentAnnotation: i.digest},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1", "controller": true, "blockOwnerDeletion": true}},
		},
		"spec": map[string]any{"ports": []any{map[string]any{"port": int64(1)}}, "allocateLoadBalancerNodePorts": false},
	}
	if diff := cmp.Diff(want, i.object.Object); diff != "" {
		t.Errorf("intent (-want +got):\n%s", diff)
	}
	if service.ResourceVersion != "7" || service.Annotations[IntentAnnotation] != "old" {
		t.Error("the caller's object was changed")
	}
}

func TestWhatAPointerPointsToStaysEvenWhenItIsEmpty(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}, Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}, {}},
	}}
	spec, _ := at(mustIntent(t, policy).object.Object, "spec.ingress")
	want := []any{map[string]any{"from": []any{map[string]any{"podSelector": map[string]any{}}}}, map[string]any{}}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("ingress (-want +got):\n%s", diff)
	}
}

func TestTheDigestOfASecretSaysNothingAboutItsValues(t *testing.T) {
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}, Data: data}
	}
	one, other := mustIntent(t, secret(map[string][]byte{"k": []byte("1")})), mustIntent(t, secret(map[string][]byte{"k": []byte("2")}))
	more := mustIntent(t, secret(map[string][]byte{"k": []byte("1"), "l": nil}))
	if one.digest != other.digest || one.digest == more.digest {
		t.Errorf("digests %s, %s, with another name %s", one.digest, other.digest, more.digest)
	}
	text := mustIntent(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}, StringData: map[string]string{"k": "1"}})
	if diff := cmp.Diff(one.object.Object, text.object.Object); diff != "" {
		t.Errorf("stringData differs from data:\n%s", diff)
	}
}

func TestAnImmutableErrorNamesNoSecret(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}, Immutable: new(true), Data: map[string][]byte{"k": []byte("hidden-1")}}
	live, err := fields(secret)
	if err != nil {
		t.Fatal(err)
	}
	secret.Data["k"] = []byte("hidden-2")
	refused := immutableChange(mustIntent(t, secret), live)
	if refused == nil || refused.Path != "data" || strings.Contains(refused.Error(), "hidden") || refused.From+refused.To != "" {
		t.Errorf("got %v", refused)
	}
}

func TestAnOwnerThatWasNotReadIsRefused(t *testing.T) {
	owner := testOwner()
	owner.UID = ""
	if _, err := newIntent(scheme.Scheme, owner, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}}, options{}); err == nil {
		t.Error("accepted an owner without UID")
	}
}
