// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestWhatADefinitionConcernsIsLookedAtAgain: API servers may serve a kind only after the last event of its definition.
func TestWhatADefinitionConcernsIsLookedAtAgain(t *testing.T) {
	crd := newDefinition()
	crd.SetName("mariadbs.k8s.mariadb.com")
	for name, change := range map[string]func(*controllertest.FakeInformer){
		"the definition comes":          func(i *controllertest.FakeInformer) { i.Add(crd) },
		"the definition is established": func(i *controllertest.FakeInformer) { i.Update(crd, crd) },
		"the definition goes":           func(i *controllertest.FakeInformer) { i.Delete(crd) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
				time.AfterFunc(time.Hour, q.ShutDown) // who waits in vain has no request
				asked := 0
				informer := informerWith(t, q, waker(func(ctx context.Context) []ctrl.Request {
					if asked++; ctx.Err() != nil {
						t.Errorf("asked with a context that has ended: %v", ctx.Err())
					}
					return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: "demo"}}}
				}))
				change(informer)
				for _, after := range []time.Duration{0, discoveryDelay, 2 * discoveryDelay, 6 * discoveryDelay, 18 * discoveryDelay} {
					began := time.Now()
					request, _ := q.Get()
					q.Done(request)
					if took := time.Since(began); request.Name != "demo" || took != after {
						t.Errorf("%v was woken after %s, want %s", request, took, after)
					}
				}
				change(informer)
				q.ShutDown()
				time.Sleep(2 * discoveryTimeout)
				if asked != 6 {
					t.Errorf("asked %d times, want five times, and once before the controller ended", asked)
				}
			})
		})
	}
}

// informerWith returns an informer of definitions whose events controller-runtime gives to a handler, as it does in a manager.
func informerWith(t *testing.T, q workqueue.TypedRateLimitingInterface[ctrl.Request], h handler.TypedFuncs[*unstructured.Unstructured, ctrl.Request]) *controllertest.FakeInformer {
	t.Helper()
	informers, kind := &informertest.FakeInformers{Scheme: runtime.NewScheme()}, newDefinition()
	events := source.Kind(informers, kind, h)
	if err := errors.Join(events.Start(t.Context(), q), events.WaitForSync(t.Context())); err != nil {
		t.Fatal(err)
	}
	informer, err := informers.FakeInformerFor(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	return informer
}
