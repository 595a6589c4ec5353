// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker looks after single worker pods, one key each: it drains and undrains their Slurm nodes for reasons of
// ours, shows Slurm's state on the pod, protects busy pods from eviction, and deletes retired ones once nothing runs on
// them.
package worker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	nodesets "github.com/coxswain-hpc/coxswain/internal/controller/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=get;list;watch

// nodeIndex is the cache's index of worker pods by cluster and Slurm node, as made by nodeKey.
const nodeIndex = "coxswain.dev/slurm-node"

type reconciler struct {
	component.Base
	links  *link.Registry
	writes writes
}

// Setup registers the controller of worker pods.
func Setup(ctx context.Context, mgr ctrl.Manager, base component.Base, links *link.Registry) error {
	r := &reconciler{Base: base, links: links}
	err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, nodeIndex, func(o client.Object) []string {
		pod, ok := o.(*corev1.Pod)
		if !ok || !isWorker(o) {
			return nil
		}
		cluster := pod.Labels[slinkyv1beta1.LabelCluster]
		return []string{nodeKey(cluster, nodesets.SlurmNode(pod)), nodeKey(cluster, "")}
	})
	if err != nil {
		return fmt.Errorf("indexing worker pods by Slurm node: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("worker").
		For(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(isWorker))).
		WatchesRawSource(r.slurmChanges()).
		WithOptions(controller.Options{MaxConcurrentReconciles: base.Concurrency}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of worker pods: %w", err)
	}
	return nil
}

func isWorker(o client.Object) bool { return o.GetLabels()[slinkyv1beta1.LabelCluster] != "" }

// nodeKey is the index entry of a Slurm node; that of an empty name stands for all nodes of the cluster.
func nodeKey(cluster, node string) string { return cluster + "/" + node }

// Reconcile brings one worker a step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.Client.Get(ctx, req.NamespacedName, &pod); err != nil {
		r.writes.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOf(&pod)
	if owner == nil || owner.Kind != "NodeSet" {
		return ctrl.Result{}, nil
	}
	var set slinkyv1beta1.NodeSet
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &set); err != nil {
		// Without its NodeSet the pod is being collected.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	worker, l := r.gather(&pod, &set)
	action := nodeset.Next(worker)
	if err := r.drive(ctx, l, &pod, &set, worker, action); err != nil {
		return ctrl.Result{}, err
	}
	if action.Again.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(time.Millisecond, action.Again.Sub(r.Clock.Now()))}, nil
}

// gather puts together what is known of one worker. Without a link to Slurm nothing is.
func (r *reconciler) gather(pod *corev1.Pod, set *slinkyv1beta1.NodeSet) (nodeset.Worker, *link.Link) {
	w := nodeset.Worker{Now: r.Clock.Now(), Pod: nodesets.Facts(pod), Protect: set.DisruptionProtection()}
	if set.Spec.DrainTimeout != nil {
		w.DrainTimeout = set.Spec.DrainTimeout.Duration
	}
	l, ok := r.links.Get(link.Key{Namespace: set.Namespace, Name: set.Spec.ControllerRef.Name})
	if !ok {
		w.Why = "no RestApi refers to Controller " + set.Spec.ControllerRef.Name
		return w, nil
	}
	snapshot := l.Snapshot()
	name := nodesets.SlurmNode(pod)
	n, known := snapshot.Node(name)
	switch {
	case snapshot.Trust == link.Stale:
		// The snapshot says why in more words, and in others each time; these go on the pod.
		w.Why = "Slurm does not answer"
		return w, l
	case snapshot.Trust != link.Fresh:
		w.Why = snapshot.Why
		return w, l
	case !r.writes.seen(client.ObjectKeyFromObject(pod), snapshot.Taken):
		// A list that was asked for before the change may show it already; then no other change follows.
		w.Why, w.Again = "waiting to hear of the last change to it", w.Now.Add(time.Second)
		return w, l
	}
	w.Asked, w.Known, w.State = snapshot.Taken, known, snapshot.State(name)
	if n != nil {
		w.Reason = node.Reason{Text: n.Reason, SetBy: n.ReasonUser, At: n.ReasonTime}
	}
	return w, l
}

// drive carries the action out.
func (r *reconciler) drive(ctx context.Context, l *link.Link, pod *corev1.Pod, set *slinkyv1beta1.NodeSet, w nodeset.Worker, action nodeset.Action) error {
	name := nodesets.SlurmNode(pod)
	key := client.ObjectKeyFromObject(pod)
	switch {
	case action.Drain != "":
		err := l.Drain(ctx, []string{name}, action.Drain)[name]
		r.writes.wrote(key, r.Clock.Now())
		if err != nil {
			return fmt.Errorf("draining Slurm node %s of Pod %s: %w", name, key, err)
		}
		log.FromContext(ctx).Info("Drained a Slurm node", "node", name, "reason", action.Drain)
		r.Recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Drained", "Drain", "Slurm node %s drains: %s", name, action.Message)
	case action.Undrain:
		err := l.Undrain(ctx, []string{name})[name]
		r.writes.wrote(key, r.Clock.Now())
		if err != nil {
			return fmt.Errorf("undraining Slurm node %s of Pod %s: %w", name, key, err)
		}
		log.FromContext(ctx).Info("Undrained a Slurm node", "node", name)
		r.Recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Undrained", "Undrain", "Slurm node %s takes jobs again", name)
	}
	if action.Delete {
		return r.delete(ctx, pod, set, action)
	}
	return r.show(ctx, pod, w, action)
}

// delete deletes the very version of the pod that was decided about: it may have been reprieved since.
func (r *reconciler) delete(ctx context.Context, pod *corev1.Pod, set *slinkyv1beta1.NodeSet, action nodeset.Action) error {
	err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the event of that change is on its way
	}
	if err != nil {
		return fmt.Errorf("deleting Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	log.FromContext(ctx).Info("Deleted a worker", "why", action.Message)
	r.Recorder.Eventf(set, pod, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted Pod %s: %s", pod.Name, action.Message)
	return nil
}
