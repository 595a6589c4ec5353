// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// staleClient reads the ConfigMaps of an earlier moment and writes to the real server: a cache that lags behind.
func TestBehindDoesNotAskForWhatTheCacheHadAndHasNoMore(t *testing.T) {
	e := newEngine(t)
	a := NewApplier(e.staleReads(), e.mgr.GetAPIReader())
	cm := e.configMap(nil)
	if err := e.outsider.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if a.Wrote(e.owner, cm); !e.behind(a) {
		t.Error("an object that was made, and that the cache does not have yet, is not waited for")
	}
	if a.Changed(e.owner, cm); e.behind(a) {
		t.Error("waits for an object that the cache had, and that has gone from it")
	}
}

type staleClient struct {
	client.Client
	earlier client.Client
}

// staleReads returns a client whose reads stay at this moment.
func (e *engine) staleReads() *staleClient {
	e.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := e.outsider.List(e.t.Context(), list, client.InNamespace(e.server.Namespace)); err != nil {
		e.t.Fatal(err)
	}
	earlier := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithLists(list).
		WithIndex(&corev1.ConfigMap{}, OwnerIndex, ControllerUID).Build()
	return &staleClient{Client: e.mgr.GetClient(), earlier: earlier}
}

// Get implements client.Reader.
func (c *staleClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.earlier.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *staleClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.earlier.List(ctx, list, opts...)
}

func (e *engine) behind(a *Applier) bool {
	e.t.Helper()
	behind, err := a.Behind(e.t.Context(), e.owner)
	if err != nil {
		e.t.Fatal(err)
	}
	return behind
}

func TestACacheThatLagsCausesNoSecondCall(t *testing.T) {
	e := newEngine(t)
	cached := e.staleReads()
	a := NewApplier(cached, e.mgr.GetAPIReader())
	for _, data := range []string{"1", "2"} {
		cm := e.configMap(map[string]string{"a": data})
		if result, err := a.Apply(t.Context(), e.owner, cm); err != nil || !result.Wrote() {
			t.Fatalf("got %s, %v", result, err)
		}
		e.server.Writes.Reset()
		if result, err := a.Apply(t.Context(), e.owner, cm); err != nil || result.Wrote() {
			t.Errorf("with a lagging cache: %s, %v", result, err)
		}
		e.server.Writes.ExpectNone(t)
		if !e.behind(a) {
			t.Error("the lag is not noticed")
		}
		// The cache catches up, and then lags again behind the next write.
		cached.earlier = e.staleReads().earlier
		if e.behind(a) {
			t.Error("behind although the cache has caught up")
		}
	}
}

func TestTheGenerationOfAnObjectIsTheLatestThatWasWritten(t *testing.T) {
	e := newEngine(t)
	pdb := func(n int) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.server.Namespace, Name: "p"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt(n)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		}
	}
	e.apply(pdb(1))
	before := pdb(0)
	if err := e.outsider.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	a := NewApplier(e.mgr.GetClient(), e.mgr.GetAPIReader())
	if got := a.Generation(e.owner, before); got != 1 {
		t.Errorf("nothing was written, and it is %d", got)
	}
	if _, err := a.Apply(t.Context(), e.owner, pdb(2)); err != nil {
		t.Fatal(err)
	}
	if got := a.Generation(e.owner, before); got != 2 {
		t.Errorf("another spec was written, and it is %d", got)
	}
	other := before.DeepCopy()
	other.UID = "another of the same name"
	if got := a.Generation(e.owner, other); got != 1 {
		t.Errorf("that of another object of the same name is %d", got)
	}
}

func TestALaggingCacheDoesNotBringBackWhatSomebodyDeleted(t *testing.T) {
	e := newEngine(t)
	cm := e.configMap(map[string]string{"a": "1"})
	e.apply(cm)
	a := NewApplier(e.staleReads(), e.mgr.GetAPIReader())
	if err := e.outsider.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["a"] = "2"
	if _, err := a.Apply(t.Context(), e.owner, cm); err == nil {
		t.Error("an update from an old view made a deleted object anew")
	}
}

func TestBehindEndsWhenTheWrittenObjectIsGone(t *testing.T) {
	e := newEngine(t)
	a := NewApplier(e.staleReads(), e.mgr.GetAPIReader())
	cm := e.configMap(nil)
	if _, err := a.Apply(t.Context(), e.owner, cm); err != nil {
		t.Fatal(err)
	}
	if !e.behind(a) {
		t.Error("the creation is not noticed as unseen")
	}
	if err := e.outsider.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if e.behind(a) {
		t.Error("waits for an object that will never come")
	}
}

func TestBehindWaitsForDeletions(t *testing.T) {
	e := newEngine(t)
	e.apply(e.configMap(nil))
	cached := e.staleReads()
	a := NewApplier(cached, e.mgr.GetAPIReader())
	if result, err := a.Prune(t.Context(), e.owner, nil, &corev1.ConfigMap{}); err != nil || !result.Wrote() {
		t.Fatalf("got %s, %v", result, err)
	}
	if !e.behind(a) {
		t.Error("the deletion is not noticed as unseen")
	}
	cached.earlier = e.staleReads().earlier
	if e.behind(a) {
		t.Error("behind although the cache shows the deletion")
	}
}

// While the rest of what was written is looked for, which may ask the API server, the cache may catch up.
func TestAnOwnerThatWasReadBeforeTheCacheCaughtUpIsBehind(t *testing.T) {
	e := newEngine(t)
	a := NewApplier(e.mgr.GetClient(), e.mgr.GetAPIReader())
	read := e.owner.DeepCopyObject().(client.Object)
	after := e.owner.DeepCopyObject().(client.Object)
	after.SetAnnotations(map[string]string{"a": "b"})
	if err := e.outsider.Update(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	a.Wrote(e.owner, after)
	apiserver.Eventually(t, func() error {
		cached := &corev1.ConfigMap{}
		if err := e.mgr.GetClient().Get(t.Context(), client.ObjectKeyFromObject(read), cached); err != nil {
			return err
		}
		if cached.ResourceVersion == read.GetResourceVersion() {
			return errors.New("the cache lags")
		}
		return nil
	})
	if behind, err := a.Behind(t.Context(), read); err != nil || !behind {
		t.Errorf("it decides by what was read before: %t, %v", !behind, err)
	}
	if behind, err := a.Behind(t.Context(), after); err != nil || behind {
		t.Errorf("it waits for what it has: %t, %v", behind, err)
	}
}
