// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Reconciler returns a reconciler that makes a span of each pass of next, and next itself where nothing is traced. controller is the
// name of the controller, object an object of the kind that it is about. Objects are looked up in reader, which has to be the
// manager's cache. All reconcilers are made before the first one runs.
func (t *Tracing) Reconciler(controller string, object client.Object, reader client.Client, next reconcile.Reconciler) reconcile.Reconciler {
	if t == nil {
		return next
	}
	gvk, err := apiutil.GVKForObject(object, reader.Scheme())
	if err != nil {
		return next // the controller itself says that nobody knows its kind
	}
	t.kinds[gvk.GroupKind()] = true
	return &reconciler{tracing: t, controller: controller, gvk: gvk, reader: reader, next: next}
}

type reconciler struct {
	tracing    *Tracing
	controller string
	gvk        schema.GroupVersionKind
	reader     client.Client
	next       reconcile.Reconciler
}

// Reconcile is part of reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	chain := r.chain(ctx, req)
	options := []trace.SpanStartOption{trace.WithAttributes(
		keyController.String(r.controller), keyReconcile.String(string(controller.ReconcileIDFromContext(ctx))),
		keyKind.String(r.gvk.GroupKind().String()), keyNamespace.String(req.Namespace), keyName.String(req.Name),
	)}
	if len(chain) > 0 {
		options = append(options, trace.WithAttributes(keyGeneration.Int64(chain[0].object.GetGeneration())))
	}
	parent := ctx
	switch change, open := r.changeOf(chain); {
	case open:
		parent = trace.ContextWithSpanContext(ctx, change.first)
		options = append(options, trace.WithAttributes(change.attributes()...))
	case change.first.IsValid():
		options = append(options, trace.WithLinks(trace.Link{SpanContext: change.first, Attributes: change.attributes()}))
	}
	ctx, span := r.tracing.tracer.Start(parent, "reconcile "+r.controller, options...)
	defer span.End()
	if span.SpanContext().IsSampled() {
		ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("traceID", span.SpanContext().TraceID().String()))
	}
	result, err := r.next.Reconcile(ctx, req)
	switch {
	case err != nil:
		span.SetAttributes(keyResult.String("error"))
		span.SetStatus(codes.Error, err.Error()) // as in the log
	case result.RequeueAfter > 0:
		span.SetAttributes(keyResult.String("requeue"), keyAgain.Float64(float64(result.RequeueAfter)/float64(time.Second)))
	default:
		span.SetAttributes(keyResult.String("done"))
	}
	return result, err
}

// ancestor is an object and its kind: that of a request, or one that controls it.
type ancestor struct {
	kind   schema.GroupVersionKind
	object client.Object
}

// maxOwners bounds how far owners are followed: pod, NodeSet, SlurmCluster.
const maxOwners = 4

// chain returns the object of a request, the object that controls it, and so on; empty if the object does not exist.
func (r *reconciler) chain(ctx context.Context, req reconcile.Request) []ancestor {
	object, err := r.get(ctx, r.gvk, req.NamespacedName)
	if err != nil {
		if apierrors.IsNotFound(err) {
			r.tracing.changes.forget(r.gvk.GroupKind(), req.NamespacedName)
		}
		return nil
	}
	out := []ancestor{{r.gvk, object}}
	for len(out) < maxOwners {
		owner := metav1.GetControllerOfNoCopy(object)
		if owner == nil {
			break
		}
		gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		if !r.tracing.kinds[gvk.GroupKind()] {
			break
		}
		object, err = r.get(ctx, gvk, client.ObjectKey{Namespace: req.Namespace, Name: owner.Name})
		if err != nil || object.GetUID() != owner.UID {
			break
		}
		out = append(out, ancestor{gvk, object})
	}
	return out
}

// get reads an object from the cache. It must not be changed.
func (r *reconciler) get(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	made, err := r.reader.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return object, r.reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy)
}

// ours reports whether users change objects of a group to change a Slurm cluster.
func ours(group string) bool {
	return group == slinkyv1beta1.GroupVersion.Group || group == nebiusv1.GroupVersion.Group || group == nebiusv1alpha1.GroupVersion.Group
}

// changeOf is the change that a pass is part of: that of the outermost owner whose change is open. When none is, it is the last one of
// the outermost owner.
func (r *reconciler) changeOf(chain []ancestor) (out change, open bool) {
	for _, l := range slices.Backward(chain) {
		if !ours(l.kind.Group) {
			continue
		}
		c := r.tracing.changes.note(l.kind.GroupKind(), l.object, open)
		switch {
		case !open && r.tracing.changes.open(c):
			out, open = c, true
		case !out.first.IsValid():
			out = c
		}
	}
	return out, open
}
