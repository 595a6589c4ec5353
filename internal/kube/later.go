// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Later watches kinds that the API server may not have when the manager starts. Of their objects only the metadata is kept; the
// objects that control them are woken.
type Later struct {
	cache   cache.Cache
	handler handler.EventHandler

	mu      sync.Mutex
	watch   func(source.Source) error
	started map[schema.GroupVersionKind]bool
}

// NewLater returns a Later that watches nothing yet. owner is an empty object of the kind that controls the objects.
func NewLater(mgr ctrl.Manager, owner client.Object) *Later {
	return &Later{
		cache: mgr.GetCache(), started: map[schema.GroupVersionKind]bool{},
		handler: handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), owner, handler.OnlyControllerOwner()),
	}
}

// Join lets events wake the controller that is being built.
func (l *Later) Join(b *builder.Builder) {
	b.WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watch = func(s source.Source) error { return s.Start(ctx, queue) }
		return nil
	}))
}

// Follow watches a kind as long as it is served. Call it whenever that is known; it costs nothing if nothing changed.
func (l *Later) Follow(ctx context.Context, served bool, kind schema.GroupVersionKind) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watch == nil || served == l.started[kind] {
		return nil
	}
	objects := &metav1.PartialObjectMetadata{}
	objects.SetGroupVersionKind(kind)
	var err error
	if served {
		err = l.watch(source.Kind[client.Object](l.cache, objects, l.handler))
	} else {
		err = l.cache.RemoveInformer(ctx, objects)
	}
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	l.started[kind] = served
	return nil
}
