// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// TestWhatADefinitionConcernsIsLookedAtAgain is about API servers that serve a kind only after the last event of its definition.
func TestWhatADefinitionConcernsIsLookedAtAgain(t *testing.T) {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	type waking = handler.TypedFuncs[*metav1.PartialObjectMetadata, ctrl.Request]
	for name, change := range map[string]func(context.Context, waking, queue){
		"it comes": func(ctx context.Context, h waking, q queue) {
			h.Create(ctx, event.TypedCreateEvent[*metav1.PartialObjectMetadata]{}, q)
		},
		"it is established": func(ctx context.Context, h waking, q queue) {
			h.Update(ctx, event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{}, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
				ctx, cancel := context.WithCancel(t.Context())
				asked := 0
				h := waker(func(context.Context) []ctrl.Request {
					asked++
					return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: "demo"}}}
				})
				change(ctx, h, q)
				for _, after := range []time.Duration{0, discoveryDelay, 2 * discoveryDelay, 6 * discoveryDelay, 18 * discoveryDelay} {
					began := time.Now()
					request, _ := q.Get()
					q.Done(request)
					if took := time.Since(began); request.Name != "demo" || took != after {
						t.Errorf("%v was woken after %s, want %s", request, took, after)
					}
				}
				change(ctx, h, q)
				cancel()
				time.Sleep(2 * discoveryTimeout)
				q.ShutDown()
				synctest.Wait()
				if asked != 6 {
					t.Errorf("asked %d times, want five times, and once before the controller ended", asked)
				}
			})
		})
	}
}
