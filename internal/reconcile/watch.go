// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Watches is what wakes the reconciler of a kind.
type Watches struct {
	// List is an empty list of the kind; nil for a kind whose objects refer to nothing. The kind needs reference.Index.
	List client.ObjectList
	// Owns are the kinds of objects that it makes.
	Owns []client.Object
	// SharesWith are the kinds of objects that it makes together with others, none of which is their controller.
	SharesWith []client.Object
	// RefersTo are kinds of our own objects that it may refer to.
	RefersTo []client.Object
	// PodsOf is the value of the label app.kubernetes.io/name of pods whose own status matters; empty when the number of ready pods is
	// enough.
	PodsOf string
	// BySecret and ByConfigMap map a Secret or a ConfigMap to objects that depend on it without referring to it themselves; nil is none.
	BySecret, ByConfigMap handler.MapFunc
	// Claims is true if objects may refer to PersistentVolumeClaims.
	Claims bool
	// PodTemplates is true if objects may refer to PodTemplates.
	PodTemplates bool
	// Other adds watches of this kind only; nil adds nothing.
	Other func(b *builder.Builder)
}

// SameName wakes the object that has the name of the one that an event is about.
func SameName(_ context.Context, obj client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// Setup registers the reconciler with a manager.
func (k *Kind[T, F, P, O]) Setup(mgr ctrl.Manager, w Watches) error {
	obj := k.New()
	name := k.Name
	if name == "" {
		var err error
		if name, err = kindOf(mgr.GetScheme(), obj); err != nil {
			return err
		}
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(obj).
		WithOptions(controller.Options{MaxConcurrentReconciles: k.Concurrency})
	for _, owned := range w.Owns {
		b = b.Owns(owned)
	}
	for _, shared := range w.SharesWith {
		b = b.Watches(shared, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), obj))
	}
	for _, c := range w.RefersTo {
		kind, err := kindOf(mgr.GetScheme(), c)
		if err != nil {
			return err
		}
		b = b.Watches(c, handler.EnqueueRequestsFromMapFunc(reference.Referrers(k.Client, w.List, kind)))
	}
	if w.PodsOf != "" {
		b = b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(instanceOf(w.PodsOf)))
	}
	if w.List != nil {
		k.watchReferences(b, w)
	}
	if w.Other != nil {
		w.Other(b)
	}
	if err := b.Complete(k.Traced(name, obj, k)); err != nil {
		return fmt.Errorf("setting up the controller of %s: %w", name, err)
	}
	return nil
}

// watchReferences watches the metadata of Secrets, ConfigMaps, claims and PodTemplates, whose content is read when it is needed.
func (b *Base) watchReferences(to *builder.Builder, w Watches) {
	kinds := []string{"Secret", "ConfigMap"}
	if w.Claims {
		kinds = append(kinds, "PersistentVolumeClaim")
	}
	if w.PodTemplates {
		kinds = append(kinds, "PodTemplate")
	}
	others := map[string]handler.MapFunc{"Secret": w.BySecret, "ConfigMap": w.ByConfigMap}
	for _, kind := range kinds {
		maps := []handler.MapFunc{reference.Referrers(b.Client, w.List, kind)}
		if others[kind] != nil {
			maps = append(maps, others[kind])
		}
		b.watchMetadata(to, kind, maps...)
	}
}

// WatchSecrets wakes the objects of list's kind that refer to a Secret when it changes.
func (b *Base) WatchSecrets(to *builder.Builder, list client.ObjectList) {
	b.watchMetadata(to, "Secret", reference.Referrers(b.Client, list, "Secret"))
}

// watchMetadata wakes the objects that any of the functions maps an object to. Only metadata is kept in memory.
func (b *Base) watchMetadata(to *builder.Builder, kind string, maps ...handler.MapFunc) {
	metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
	to.WatchesRawSource(source.Kind(b.Metadata, metadata, handler.TypedEnqueueRequestsFromMapFunc(
		func(ctx context.Context, o *metav1.PartialObjectMetadata) []ctrl.Request {
			var out []ctrl.Request
			for _, m := range maps {
				out = append(out, m(ctx, o)...)
			}
			return out
		})))
}

// kindOf is the kind of a typed object, which does not carry it itself.
func kindOf(scheme *runtime.Scheme, obj client.Object) (string, error) {
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	return kinds[0].Kind, nil
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

// Queue is a controller's queue of what to reconcile.
type Queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// SlurmChanges is a source that passes every change of the Slurm caches to wake, which puts on the queue what it concerns. Its
// goroutine ends with the controller's context.
func SlurmChanges(caches *slurmcache.Registry, wake func(ctx context.Context, queue Queue, change slurmcache.Change)) source.Source {
	return source.Func(func(ctx context.Context, queue Queue) error {
		subscription := caches.Subscribe()
		go func() {
			defer subscription.Close()
			for {
				select {
				case <-ctx.Done():
					return
				case <-subscription.Ready():
					for _, change := range subscription.Take() {
						wake(ctx, queue, change)
					}
				}
			}
		}()
		return nil
	})
}

// WorkerChanges is a source that puts on the queue what requests returns for the worker pod of each Slurm node that changed, or for all worker
// pods of a cluster that changed. The controller of worker pods adds the index that it uses.
func WorkerChanges(caches *slurmcache.Registry, pods client.Reader, requests handler.MapFunc) source.Source {
	return SlurmChanges(caches, func(ctx context.Context, queue Queue, change slurmcache.Change) {
		found, err := workerpod.OfSlurmNode(ctx, pods, change.Cluster.Namespace, change.Cluster.Name, change.Node)
		if err != nil {
			log.FromContext(ctx).Error(err, "Could not find the pod of a Slurm node", "cluster", change.Cluster.String(), "node", change.Node)
			return
		}
		for i := range found {
			for _, request := range requests(ctx, &found[i]) {
				queue.Add(request)
			}
		}
	})
}
