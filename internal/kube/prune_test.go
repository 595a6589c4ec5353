// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOnlyWhatTheOwnerControlsAndNoLongerWantsIsPruned(t *testing.T) {
	e := newEngine(t)
	named := func(name string) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: e.meta(name)} }
	key := &corev1.Secret{ObjectMeta: e.meta("key")}
	key.Labels[KeyLabel] = ""
	password := &corev1.Secret{ObjectMeta: e.meta("password")}
	e.apply(named("keep"), named("drop"), key, password, e.deployment(), e.kinds()["PersistentVolumeClaim"])
	first := e.owner
	e.owner = e.newOwner("another")
	e.apply(named("of-another"))
	e.owner = first
	if err := e.outsider.Create(t.Context(), named("of-nobody")); err != nil {
		t.Fatal(err)
	}

	result, err := e.Prune(t.Context(), e.owner, []client.Object{named("keep")}, &corev1.ConfigMap{}, &corev1.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Ref{{"ConfigMap", e.server.Namespace, "drop"}, {"Secret", e.server.Namespace, "password"}}
	var pruned []Ref
	for _, c := range result.Changes {
		if c.Action == Pruned {
			pruned = append(pruned, c.Object)
		}
	}
	if diff := cmp.Diff(want, pruned); diff != "" {
		t.Errorf("pruned (-want +got):\n%s", diff)
	}
	var left []string
	list := &corev1.ConfigMapList{}
	if err := e.outsider.List(t.Context(), list, client.InNamespace(e.server.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, cm := range list.Items {
		left = append(left, cm.Name)
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"another", "keep", "of-another", "of-nobody", "owner"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	e.live(key)
	e.live(e.deployment())

	e.catchUp()
	e.server.Writes.Reset()
	if result, err := e.Prune(t.Context(), e.owner, []client.Object{named("keep")}, &corev1.ConfigMap{}, &corev1.Secret{}); err != nil || len(result.Changes) > 0 {
		t.Errorf("second prune: %s, %v", result, err)
	}
	e.server.Writes.ExpectNone(t)
}

func TestClaimsAndPodsAreRefusedByPrune(t *testing.T) {
	e := newEngine(t)
	for _, kind := range []client.Object{&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Pod{}, &corev1.Namespace{}} {
		if _, err := e.Prune(t.Context(), e.owner, nil, kind); err == nil || !strings.Contains(err.Error(), "never pruned") {
			t.Errorf("%T: got %v", kind, err)
		}
	}
	e.server.Writes.ExpectNone(t)
}

func TestWhatChangedSinceTheCacheSawItIsNotPruned(t *testing.T) {
	e := newEngine(t)
	cm := e.configMap(map[string]string{"a": "1"})
	e.apply(cm)
	cached := e.staleReads()
	live := e.live(cm).(*corev1.ConfigMap)
	live.OwnerReferences = nil // handed to somebody else
	if err := e.outsider.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	stale := NewApplier(cached, e.mgr.GetAPIReader())
	result, err := stale.Prune(t.Context(), e.owner, nil, &corev1.ConfigMap{})
	if err != nil || len(result.Changes) > 0 {
		t.Errorf("got %s, %v", result, err)
	}
	e.live(cm)
}
