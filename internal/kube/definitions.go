// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Definitions are caches of the metadata of CustomResourceDefinitions of others, by the definition's name. Each holds that one
// only: the operator may read no other.
type Definitions map[string]cache.Cache

// NewDefinitions makes the caches and lets the manager run them.
func NewDefinitions(config *rest.Config, mgr ctrl.Manager, names ...string) (Definitions, error) {
	out := Definitions{}
	for _, name := range names {
		if out[name] != nil {
			continue
		}
		crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
		var only client.ListOptions
		client.MatchingFields{"metadata.name": name}.ApplyToList(&only)
		definitions, err := cache.New(config, cache.Options{
			Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
			ByObject: map[client.Object]cache.ByObject{crd: {Field: only.FieldSelector}},
		})
		if err != nil {
			return nil, fmt.Errorf("making the cache of definition %s: %w", name, err)
		}
		if err := mgr.Add(definitions); err != nil {
			return nil, fmt.Errorf("adding the cache of definition %s: %w", name, err)
		}
		out[name] = definitions
	}
	return out, nil
}

// Serves says whether the API server has a kind, by the definition of that name; see the function Serves.
func (d Definitions) Serves(ctx context.Context, mapper meta.RESTMapper, definition string, kind schema.GroupVersionKind) (bool, error) {
	return Serves(ctx, d[definition], mapper, definition, kind)
}

const (
	// discoveryDelay is when what a definition concerns is looked at once more, and then after three times as long each. API servers
	// serve a kind, and say so, a moment after the last event of its definition; no event tells when. Several API servers do it each in its
	// own time, and one that has much to do takes more than seconds.
	discoveryDelay = 5 * time.Second
	// discoveryTimeout is for how long that is done.
	discoveryTimeout = 3 * time.Minute
)

// Watch has wake called when a definition comes, changes or goes, and some times more within discoveryTimeout; it says which objects are
// to be reconciled then.
func (d Definitions) Watch(b *builder.Builder, definition string, wake func(context.Context) []ctrl.Request) {
	crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	b.WatchesRawSource(source.Kind(d[definition], crd, waker(wake)))
}

func waker(wake func(context.Context) []ctrl.Request) handler.TypedFuncs[*metav1.PartialObjectMetadata, ctrl.Request] {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue) {
		if q.ShuttingDown() {
			return
		}
		for _, request := range wake(ctx) {
			q.Add(request)
		}
	}
	changed := func(ctx context.Context, q queue) {
		add(ctx, q)
		ctx = context.WithoutCancel(ctx) // it ends with the event
		// The queue keeps one time for each object, so it cannot be told of all.
		for after := discoveryDelay; after < discoveryTimeout; after *= 3 {
			time.AfterFunc(after, func() { add(ctx, q) })
		}
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, ctrl.Request]{
		CreateFunc: func(ctx context.Context, _ event.TypedCreateEvent[*metav1.PartialObjectMetadata], q queue) {
			changed(ctx, q)
		},
		UpdateFunc: func(ctx context.Context, _ event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q queue) {
			changed(ctx, q)
		},
		DeleteFunc: func(ctx context.Context, _ event.TypedDeleteEvent[*metav1.PartialObjectMetadata], q queue) {
			changed(ctx, q)
		},
	}
}
