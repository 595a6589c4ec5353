// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// Apply examines and applies, as reconcile.Base does.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired ...client.Object) (Result, error) {
	pending, err := a.Examine(ctx, owner, desired...)
	if err != nil {
		return Result{}, err
	}
	return pending.Apply(ctx)
}

// engine is an Applier on a real apiserver with a real cache, an owner, and an outsider who edits things.
type engine struct {
	*Applier
	t        *testing.T
	server   *apiserver.Server
	mgr      manager.Manager
	outsider client.Client
	owner    *corev1.ConfigMap
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	s := apiserver.StartBare(t)
	mgr := s.Manager(t, scheme.Scheme, func(mgr manager.Manager) error {
		return SetupIndexes(t.Context(), mgr.GetFieldIndexer(), Prunable()...)
	})
	e := &engine{t: t, server: s, mgr: mgr, outsider: s.Outsider(t, scheme.Scheme)}
	e.forget()
	e.owner = e.newOwner("owner")
	return e
}

// forget gives the engine a new Applier, as after a restart.
func (e *engine) forget() { e.Applier = NewApplier(e.mgr.GetClient(), e.mgr.GetAPIReader()) }

func (e *engine) newOwner(name string) *corev1.ConfigMap {
	e.t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.server.Namespace, Name: name}}
	if err := e.outsider.Create(e.t.Context(), owner); err != nil {
		e.t.Fatal(err)
	}
	return owner
}

// apply applies, expects no error, waits for the cache and returns what happened to the first object.
func (e *engine) apply(desired ...client.Object) Change {
	e.t.Helper()
	result, err := e.Apply(e.t.Context(), e.owner, desired...)
	if err != nil {
		e.t.Fatal(err)
	}
	e.catchUp()
	return result.Changes[0]
}

// catchUp waits until the cache shows what the engine wrote.
func (e *engine) catchUp() {
	e.t.Helper()
	apiserver.Eventually(e.t, func() error {
		behind, err := e.Behind(e.t.Context(), e.owner)
		if behind {
			return errors.New("the cache is behind")
		}
		return err
	})
}

// live reads an object from the server.
func (e *engine) live(obj client.Object) client.Object {
	e.t.Helper()
	live := newOf(obj)
	if err := e.outsider.Get(e.t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
		e.t.Fatal(err)
	}
	return live
}

// edit changes an object as somebody else, and waits until the cache shows it.
func edit[T client.Object](e *engine, obj T, change func(T)) {
	e.t.Helper()
	live := e.live(obj).(T)
	change(live)
	if err := e.outsider.Update(e.t.Context(), live); err != nil {
		e.t.Fatal(err)
	}
	e.see(live)
}

// see waits until the cache shows an object as new as the one given.
func (e *engine) see(obj client.Object) {
	e.t.Helper()
	e.Wrote(e.owner, obj)
	e.catchUp()
}

func (e *engine) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.server.Namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": "slurmctld"}}
}

func (e *engine) configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: e.meta("config"), Data: data}
}

// read returns the object as it is on the server.
func read[T client.Object](t *testing.T, from client.Reader, obj T) T {
	t.Helper()
	if err := from.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}
