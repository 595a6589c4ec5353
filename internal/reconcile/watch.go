// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// ReferenceIndex is the cache's index of objects by what they refer to, as made by Ref.
const ReferenceIndex = "coxswain.dev/references"

// Ref is one entry of ReferenceIndex: kind and name of a referenced object in the same namespace.
func Ref(kind, name string) string { return kind + "/" + name }

// Watches says what wakes the reconciler of a kind.
type Watches struct {
	// Owns are the kinds of objects that it makes.
	Owns []client.Object
	// SharesWith are the kinds of objects that it makes together with others, none of which is their controller.
	SharesWith []client.Object
	// Components are kinds of component objects that it may refer to.
	Components []client.Object
	// Referrers are kinds of component objects that refer to it by controllerRef and take part in what it renders: with their
	// spec, with whether they are there, and with how many workers they are to have.
	Referrers []client.Object
	// PodsOf is the value of the label app.kubernetes.io/name of pods whose own status matters; empty when it is enough to
	// know how many are ready.
	PodsOf string
	// KeysOfController says that objects depend on the Secrets of the Controller that they refer to.
	KeysOfController bool
	// Claims says that objects may refer to PersistentVolumeClaims.
	Claims bool
	// Other adds what is the kind's alone; nil adds nothing.
	Other func(b *builder.Builder)
}

// IndexReferences adds the ReferenceIndex of a kind. references returns what an object refers to, see Ref.
func IndexReferences[T Object](ctx context.Context, mgr ctrl.Manager, obj T, references func(obj T) []string) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, obj, ReferenceIndex, func(o client.Object) []string {
		if typed, ok := o.(T); ok {
			return references(typed)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing the references of %T: %w", obj, err)
	}
	return nil
}

// Setup registers the reconciler with a manager. The kinds that it looks up need their ReferenceIndex.
func (r *Reconciler[T]) Setup(mgr ctrl.Manager, list client.ObjectList, w Watches) error {
	obj := r.New()
	kind, err := kindOf(mgr.GetScheme(), obj)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(kind).
		For(obj).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency})
	for _, owned := range w.Owns {
		b = b.Owns(owned)
	}
	for _, shared := range w.SharesWith {
		b = b.Watches(shared, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), obj))
	}
	for _, c := range w.Components {
		componentKind, err := kindOf(mgr.GetScheme(), c)
		if err != nil {
			return err
		}
		b = b.Watches(c, handler.EnqueueRequestsFromMapFunc(referrers(r.Client, list, componentKind)))
	}
	for _, c := range w.Referrers {
		b = b.Watches(c, handler.EnqueueRequestsFromMapFunc(ControllerOf), builder.WithPredicates(termsChange()))
	}
	if w.PodsOf != "" {
		b = b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(instanceOf(w.PodsOf)))
	}
	r.watchReferences(b, list, w)
	if w.Other != nil {
		w.Other(b)
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up the controller of %s: %w", kind, err)
	}
	return nil
}

// watchReferences watches the metadata of Secrets, ConfigMaps and claims, whose content is read when it is needed.
func (r *Reconciler[T]) watchReferences(b *builder.Builder, list client.ObjectList, w Watches) {
	kinds := []string{"Secret", "ConfigMap"}
	if w.Claims {
		kinds = append(kinds, "PersistentVolumeClaim")
	}
	for _, kind := range kinds {
		metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
		direct := referrers(r.Client, list, kind)
		viaController := throughControllers(r.Client, list)
		b.WatchesRawSource(source.Kind(r.References, metadata, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, o *metav1.PartialObjectMetadata) []ctrl.Request {
				requests := direct(ctx, o)
				if w.KeysOfController && kind == "Secret" {
					requests = append(requests, viaController(ctx, o)...)
				}
				return requests
			})))
	}
}

// WatchSecrets wakes the objects of list's kind that refer to a Secret when it changes.
func WatchSecrets(b *builder.Builder, base *Base, list client.ObjectList) {
	metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	direct := referrers(base.Client, list, "Secret")
	b.WatchesRawSource(source.Kind(base.References, metadata, handler.TypedEnqueueRequestsFromMapFunc(
		func(ctx context.Context, o *metav1.PartialObjectMetadata) []ctrl.Request { return direct(ctx, o) })))
}

// termsChange lets pass what concerns the object that is referred to. The counts in the status of a NodeSet change with every
// single worker, and a Controller that is looked at reads Secrets from the API server.
func termsChange() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() || desired(before) != desired(after) ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
	}}
}

// desired is how many workers a NodeSet is to have; in scaling mode DaemonSet only its status says so.
func desired(o client.Object) int32 {
	if set, ok := o.(*slinkyv1beta1.NodeSet); ok {
		return set.Status.Desired
	}
	return 0
}

// instanceOf maps a pod of a daemon to the object that it was made for, by the labels of both.
func instanceOf(daemon string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []ctrl.Request {
		instance := o.GetLabels()[label.Instance]
		if o.GetLabels()[label.Name] != daemon || instance == "" {
			return nil
		}
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: instance}}}
	}
}

// referrers maps an object of a kind to the objects of list's kind that refer to it.
func referrers(c client.Reader, list client.ObjectList, kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		return find(ctx, c, list, o.GetNamespace(), Ref(kind, o.GetName()))
	}
}

// ControllerOf maps an object to the Controller that it refers to.
func ControllerOf(_ context.Context, o client.Object) []ctrl.Request {
	var ref slinkyv1beta1.ObjectReference
	switch o := o.(type) {
	case *slinkyv1beta1.NodeSet:
		ref = o.Spec.ControllerRef
	case *slinkyv1beta1.LoginSet:
		ref = o.Spec.ControllerRef
	case *slinkyv1beta1.RestApi:
		ref = o.Spec.ControllerRef
	}
	if ref.Name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// throughControllers maps a Secret to the objects whose Controller refers to it.
func throughControllers(c client.Reader, list client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		var out []ctrl.Request
		for _, request := range find(ctx, c, &slinkyv1beta1.ControllerList{}, o.GetNamespace(), Ref("Secret", o.GetName())) {
			out = append(out, find(ctx, c, list, o.GetNamespace(), Ref("Controller", request.Name))...)
		}
		return out
	}
}

func find(ctx context.Context, c client.Reader, list client.ObjectList, namespace, ref string) []ctrl.Request {
	found, ok := list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return nil
	}
	if err := c.List(ctx, found, client.InNamespace(namespace), client.MatchingFields{ReferenceIndex: ref}); err != nil {
		log.FromContext(ctx).Error(err, "Could not find what refers to an object", "namespace", namespace, "reference", ref)
		return nil
	}
	var out []ctrl.Request
	for _, name := range namesIn(found) {
		out = append(out, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}
