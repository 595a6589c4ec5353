// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package powerstate reconciles NodeSetPowerStates. It shows in spec.activeNodes which nodes of a NodeSet Slurm wants to run, passes
// requests of others to change that on to Slurm, and writes the status. The controller of NodeSets makes and deletes the pods, as Slurm
// wants: docs/decisions/023-power-saving-by-slurms-word.md.
package powerstate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/powerstate/powerrequest"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesetpowerstates,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesetpowerstates/status,verbs=patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters,verbs=list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers;nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// changesWindow is how long changes of nodes and pods are collected, so that a job on many nodes costs one pass.
const changesWindow = 500 * time.Millisecond

type reconciler struct {
	reconcile.Base
	caches *slurmcache.Registry
}

// Setup registers the controller of NodeSetPowerStates.
func Setup(mgr ctrl.Manager, base reconcile.Base, caches *slurmcache.Registry) error {
	r := &reconciler{Base: base, caches: caches}
	return r.kind().Setup(mgr, reconcile.Watches{Other: func(b *builder.Builder) {
		b.Watches(&nebiusv1alpha1.NodeSet{}, handler.EnqueueRequestsFromMapFunc(reconcile.SameName), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
		b.Watches(&slinkyv1beta1.NodeSet{}, handler.EnqueueRequestsFromMapFunc(reference.SourceOf), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
		b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod), builder.WithPredicates(podChanges()))
		b.Watches(&slinkyv1beta1.Controller{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace), builder.WithPredicates(reachableChanges()))
		b.WatchesRawSource(reconcile.SlurmChanges(caches, r.wake))
	}})
}

func (r *reconciler) kind() *reconcile.Kind[*nebiusv1alpha1.NodeSetPowerState, facts, *plan, struct{}] {
	return &reconcile.Kind[*nebiusv1alpha1.NodeSetPowerState, facts, *plan, struct{}]{
		Base:   &r.Base,
		New:    func() *nebiusv1alpha1.NodeSetPowerState { return &nebiusv1alpha1.NodeSetPowerState{} },
		Gather: r.gather,
		Decide: decide,
		Drive:  r.drive,
		Report: report,
	}
}

// ofPod maps a worker to the NodeSetPowerState that shows it.
func (r *reconciler) ofPod(ctx context.Context, o client.Object) []ctrl.Request {
	controller := metav1.GetControllerOf(o)
	if controller == nil || controller.Kind != "NodeSet" {
		return nil
	}
	composed := &slinkyv1beta1.NodeSet{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: controller.Name}, composed); err != nil || !composed.SavesPower() {
		return nil // a NodeSet that is not there yet comes with an event of its own
	}
	return reference.SourceOf(ctx, composed)
}

// podChanges lets through the changes that the status shows.
func podChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, also := e.ObjectNew.(*corev1.Pod)
		return ok && also && podOf(before) != podOf(after)
	}}
}

// reachableChanges lets through the changes of whether Slurm answers.
func reachableChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*slinkyv1beta1.Controller)
		after, also := e.ObjectNew.(*slinkyv1beta1.Controller)
		return ok && also && reachable(before) != reachable(after)
	}}
}

// inNamespace maps an object to the NodeSetPowerStates of its namespace.
func (r *reconciler) inNamespace(ctx context.Context, o client.Object) []ctrl.Request {
	return r.of(ctx, o.GetNamespace(), "")
}

// wake puts the NodeSetPowerStates on the queue that a change in Slurm may concern.
func (r *reconciler) wake(ctx context.Context, queue reconcile.Queue, change slurmcache.Change) {
	if change.Node == slurmcache.Slurmctld {
		return
	}
	set, _, isWorker := powerrequest.Worker(change.Node)
	if change.Node != "" && !isWorker {
		return
	}
	for _, request := range r.of(ctx, change.Cluster.Namespace, set) {
		queue.AddAfter(request, changesWindow)
	}
}

// of returns the NodeSetPowerStates of a NodeSet, and of all in its namespace when set is empty.
func (r *reconciler) of(ctx context.Context, namespace, set string) (out []ctrl.Request) {
	var list nebiusv1alpha1.NodeSetPowerStateList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the NodeSetPowerStates of a namespace", "namespace", namespace)
		return nil
	}
	for i := range list.Items {
		if set == "" || list.Items[i].Spec.NodeSetRef == set {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
