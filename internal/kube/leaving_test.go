// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestThereIsNothingToDoInANamespaceOnItsWayOut(t *testing.T) {
	e := newEngine(t)
	e.apply(e.deployment())
	before := e.live(e.deployment()).(*appsv1.Deployment)
	// Without the namespace controller it stays for ever in the state in which it takes no new objects.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.server.Namespace}}
	if err := e.outsider.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	_, err := e.Apply(t.Context(), e.owner, e.configMap(map[string]string{"a": "b"}), &corev1.Secret{ObjectMeta: e.meta("secret")})
	if err == nil {
		t.Fatal("the server still creates objects")
	}
	if got := IgnoreLeaving(fmt.Errorf("gathering the facts: %w", err)); got != nil {
		t.Errorf("two refusals: %v", got)
	}
	other := errors.New("something else")
	if got := IgnoreLeaving(errors.Join(err, other)); !errors.Is(got, other) {
		t.Errorf("another failure beside: %v", got)
	}
	if IgnoreLeaving(nil) != nil || IgnoreLeaving(other) == nil {
		t.Error("an error that is none, or another one, is taken for a leaving namespace")
	}

	if err := e.outsider.Delete(t.Context(), before.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Status.Replicas = 3
	if wrote, err := e.PatchStatus(t.Context(), before, after); err != nil || wrote {
		t.Errorf("the status of an object that is gone: %v, %v", wrote, err)
	}
}
