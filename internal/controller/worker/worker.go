// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker looks after single worker pods, one key each. It drains and undrains their Slurm nodes for reasons of ours and shows
// Slurm's state on the pod. It protects busy pods from eviction, and deletes retired ones once nothing runs on them.
package worker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/podstorage"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=get;list;watch

// concurrency is how many workers are looked after at once. A reconcile mostly waits for a write to Slurm that is joined with others: with
// a lower number, a thousand drains would not fit into a few calls. A semaphore limits how many write to the API server.
const concurrency = 512

type reconciler struct {
	reconcile.Base
	caches *slurmcache.Registry
	// propagated are the condition types of Kubernetes nodes that give the reason of a drain.
	propagated []string
	// health has the conditions of Kubernetes nodes that take workers out of service.
	health health.Conditions
	// storage measures the ephemeral storage of worker pods; nil where nobody does.
	storage *podstorage.Meter
	memory  memory
	writes  semaphore
	// confirming are the reconciles that wait for Slurm to confirm a deletion.
	confirming perkey.Gate[slurmcache.Key]
	events     *eventJoiner
}

// Setup registers the controller of worker pods. The drain of a cordoned Kubernetes node gets its reason from the node's conditions of the
// propagated types. Conditions that announce maintenance, and full storage, drain the workers by themselves.
func Setup(ctx context.Context, mgr ctrl.Manager, base reconcile.Base, caches *slurmcache.Registry, propagated []string, conditions health.Conditions, storage *podstorage.Meter) error {
	r := &reconciler{
		Base: base, caches: caches, propagated: propagated, health: conditions, storage: storage,
		memory: memory{announced: announcements{process: base.Process}}, events: &eventJoiner{recorder: base.Recorder},
	}
	if err := mgr.Add(r.events); err != nil {
		return fmt.Errorf("adding the Events of worker pods: %w", err)
	}
	err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, workerpod.SlurmNodeIndex, func(o client.Object) []string {
		pod, ok := o.(*corev1.Pod)
		if !ok || !isWorker(o) {
			return nil
		}
		cluster := pod.Labels[slinkyv1beta1.LabelCluster]
		return []string{workerpod.SlurmNodeKey(cluster, workerpod.SlurmNode(pod)), workerpod.SlurmNodeKey(cluster, "")}
	})
	if err != nil {
		return fmt.Errorf("indexing worker pods by Slurm node: %w", err)
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, workerpod.KubernetesNodeIndex, func(o client.Object) []string {
		if pod, ok := o.(*corev1.Pod); ok && isWorker(o) && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing worker pods by Kubernetes node: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("worker").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(isWorker))).
		Watches(&corev1.Pod{}, withHighPriority(reconcile.SameName), builder.WithPredicates(cordons())).
		Watches(&corev1.Node{}, withHighPriority(r.podsOn), builder.WithPredicates(r.kubeNodeChanges())).
		Watches(&slinkyv1beta1.NodeSet{}, handler.EnqueueRequestsFromMapFunc(r.podsOf), builder.WithPredicates(nodeSetChanges())).
		WatchesRawSource(reconcile.WorkerChanges(r.caches, r.Client, reconcile.SameName)).
		WatchesRawSource(r.wakeWhenPermitted()).
		WatchesRawSource(r.wakeByStorage()).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(concurrency, base.Concurrency)}).
		Complete(base.Traced("worker", &corev1.Pod{}, r))
	if err != nil {
		return fmt.Errorf("setting up the controller of worker pods: %w", err)
	}
	return nil
}

func isWorker(o client.Object) bool { return o.GetLabels()[slinkyv1beta1.LabelCluster] != "" }

// Reconcile brings one worker a step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	limit := maxWrites
	defer func() {
		result.Priority = new(defaultPriority) // whatever it comes back for may wait
		r.writes.end(req.NamespacedName, limit)
	}()
	// Here and below, objects from the cache are only read.
	var pod corev1.Pod
	if err := r.Client.Get(ctx, req.NamespacedName, &pod, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if behind, err := r.Applier.Behind(ctx, &pod); err != nil || behind || r.memory.pending.has(req.NamespacedName) {
		return ctrl.Result{}, err // an event of that write is on its way
	}
	owner := workerpod.Owner(&pod)
	if owner == nil {
		return ctrl.Result{}, nil
	}
	var set slinkyv1beta1.NodeSet
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &set, client.UnsafeDisableDeepCopy); err != nil {
		// Without its NodeSet the pod is being collected.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	scope, err := r.gather(ctx, &pod, &set)
	if err != nil {
		return ctrl.Result{}, err
	}
	limit = scope.maxWrites
	if scope.pending {
		// A list that was asked for before the change may show it already; then no other change follows.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	scope.decide(ctx)
	if workerpod.DryRun(&set) {
		scope.action.StateChange, scope.action.Deletion.Delete = workerplan.StateChange{}, false
	}
	if err := r.drive(ctx, scope); err != nil {
		return ctrl.Result{}, err
	}
	if scope.action.Again.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(time.Millisecond, scope.action.Again.Sub(r.Clock.Now()))}, nil
}

// forget drops what is known about a pod that is gone.
func (r *reconciler) forget(pod types.NamespacedName) {
	r.Applier.Forget(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	if l, ok := r.caches.Get(r.memory.forget(pod)); ok {
		l.WantJobs(pod.String())
	}
}

// highPriority is for a worker that may have to be drained, defaultPriority for all others. Showing Slurm's state is most of the work: when
// a thousand nodes are cordoned, the last drain must not wait for what the first pod shows.
const (
	defaultPriority = 0
	highPriority    = 10
)

// withHighPriority wakes workers before all others.
func withHighPriority(find handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request], o client.Object) {
		for _, request := range find(ctx, o) {
			if q, ok := queue.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(highPriority)}, request)
			} else {
				queue.Add(request)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(ctx, q, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			add(ctx, q, e.Object)
		},
	}
}

// cordons lets through pods that were cordoned, retired, or neither any more.
func cordons() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // they come anyway
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			return isWorker(e.ObjectNew) && (before[slinkyv1beta1.AnnotationPodCordon] != after[slinkyv1beta1.AnnotationPodCordon] ||
				before[slinkyv1beta1.AnnotationRetired] != after[slinkyv1beta1.AnnotationRetired])
		},
	}
}
