// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Manager returns a manager whose cache sees only the test's namespace and whose writes are counted. setup, which may
// be nil, registers indexes and controllers before it starts. It is running and in sync when Manager returns, and is
// stopped and waited for when the test ends.
func (s *Server) Manager(t testing.TB, scheme *runtime.Scheme, setup func(manager.Manager) error) manager.Manager {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(s.Config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{s.Namespace: {}}},
		// Several tests of one binary register controllers of the same name.
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatalf("making a manager: %v", err)
	}
	if setup != nil {
		if err := setup(mgr); err != nil {
			t.Fatalf("setting up the manager: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("running the manager: %v", err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the manager's cache did not come into sync")
	}
	return mgr
}

// eventuallyTimeout bounds what is waited for. On a slow machine, with the race detector and other tests beside it, what takes a tenth of
// a second otherwise can take many; a test that passes does not wait longer for that.
const eventuallyTimeout = 2 * time.Minute

// Eventually polls until check returns nil, and fails the test with its last answer after two minutes.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.Now().Add(eventuallyTimeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still wrong after %s: %v", eventuallyTimeout, err)
		}
		<-tick.C
	}
}
