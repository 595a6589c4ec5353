// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
)

// annotationMisfit has what Kind.Misfit returned for a definition in a cache.
const annotationMisfit = "coxswain.dev/misfit"

// Definitions are caches of CustomResourceDefinitions of others, by the definition's name. Each holds only that one, since the operator
// may read no other, and only whether it fits, since schemas are large.
type Definitions map[string]cache.Cache

// NewDefinitions makes the caches and lets the manager run them.
func NewDefinitions(config *rest.Config, mgr ctrl.Manager, kinds ...foreignkind.Kind) (Definitions, error) {
	out := Definitions{}
	for _, kind := range kinds {
		if out[kind.Definition] != nil {
			continue
		}
		var only client.ListOptions
		client.MatchingFields{"metadata.name": kind.Definition}.ApplyToList(&only)
		definitions, err := cache.New(config, cache.Options{
			Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
			ByObject: map[client.Object]cache.ByObject{newDefinition(): {Field: only.FieldSelector, Transform: judge(kind)}},
		})
		if err != nil {
			return nil, fmt.Errorf("making the cache of definition %s: %w", kind.Definition, err)
		}
		if err := mgr.Add(definitions); err != nil {
			return nil, fmt.Errorf("adding the cache of definition %s: %w", kind.Definition, err)
		}
		out[kind.Definition] = definitions
	}
	return out, nil
}

// newDefinition is an empty CustomResourceDefinition.
func newDefinition() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	return crd
}

// judge leaves of a definition its name, and whether the kind can be used.
func judge(kind foreignkind.Kind) toolscache.TransformFunc {
	return func(o any) (any, error) {
		crd, ok := o.(*unstructured.Unstructured)
		if !ok || crd.Object["spec"] == nil {
			return o, nil // it has been here before
		}
		out := newDefinition()
		out.SetName(crd.GetName())
		out.SetUID(crd.GetUID())
		out.SetResourceVersion(crd.GetResourceVersion())
		out.SetGeneration(crd.GetGeneration())
		if misfit := kind.Misfit(crd.Object); misfit != "" {
			out.SetAnnotations(map[string]string{annotationMisfit: misfit})
		}
		return out, nil
	}
}

// Fit returns whether the API server has a kind that can be used. Where there is no definition of it, or one that does not fit, the
// manager's RESTMapper is not asked: it would ask the server for an unknown kind each time. It notices a CRD that is installed later;
// so Fit is to be asked when an object is wanted, not once at the start.
func (d Definitions) Fit(ctx context.Context, mapper meta.RESTMapper, kind foreignkind.Kind) (foreignkind.Fit, error) {
	crd := newDefinition()
	switch err := d[kind.Definition].Get(ctx, client.ObjectKey{Name: kind.Definition}, crd); {
	case apierrors.IsNotFound(err):
		return foreignkind.Fit{}, nil
	case err != nil:
		return foreignkind.Fit{}, fmt.Errorf("reading CustomResourceDefinition %s: %w", kind.Definition, err)
	}
	if misfit := crd.GetAnnotations()[annotationMisfit]; misfit != "" {
		return foreignkind.Fit{Installed: true, Misfit: misfit}, nil
	}
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return foreignkind.Fit{}, nil // not served yet
	}
	if err != nil {
		return foreignkind.Fit{}, fmt.Errorf("looking for kind %s: %w", kind, err)
	}
	return foreignkind.Fit{Installed: true}, nil
}

const (
	// discoveryDelay is when the objects that a definition concerns are looked at once more, and then after three times as long each. API
	// servers serve a kind, and list it, a moment after the last event of its definition; no event marks that. Several API servers do it
	// each in its own time, and a busy one takes more than seconds.
	discoveryDelay = 5 * time.Second
	// discoveryTimeout is how long that goes on.
	discoveryTimeout = 3 * time.Minute
)

// Watch has wake called when a definition comes, changes or goes, and some times more within discoveryTimeout; wake returns which
// objects are to be reconciled then.
func (d Definitions) Watch(b *builder.Builder, definition string, wake func(context.Context) []ctrl.Request) {
	b.WatchesRawSource(source.Kind(d[definition], newDefinition(), waker(wake)))
}

func waker(wake func(context.Context) []ctrl.Request) handler.TypedFuncs[*unstructured.Unstructured, ctrl.Request] {
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
		// The queue keeps one time for each object, so it cannot take all of them.
		for after := discoveryDelay; after < discoveryTimeout; after *= 3 {
			time.AfterFunc(after, func() { add(ctx, q) })
		}
	}
	return handler.TypedFuncs[*unstructured.Unstructured, ctrl.Request]{
		CreateFunc: func(ctx context.Context, _ event.TypedCreateEvent[*unstructured.Unstructured], q queue) {
			changed(ctx, q)
		},
		UpdateFunc: func(ctx context.Context, _ event.TypedUpdateEvent[*unstructured.Unstructured], q queue) {
			changed(ctx, q)
		},
		DeleteFunc: func(ctx context.Context, _ event.TypedDeleteEvent[*unstructured.Unstructured], q queue) {
			changed(ctx, q)
		},
	}
}
