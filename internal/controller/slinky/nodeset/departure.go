// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// departure is what decides whether a NodeSet that is being deleted may go. Kubernetes deletes its workers with it, and what still runs on
// them; as long as it stays, the worker controller drains and deletes them one by one.
type departure struct {
	// workers is the number of pods that are left.
	workers int
	// orphaned reports whether the pods of the deleted NodeSet are to be kept.
	orphaned bool
	// controller reports whether the Controller is there to stay, asked whether it has a RestApi: whether there is a Slurm whose jobs matter,
	// and a way to ask it.
	controller, asked bool
	// dryRun reports whether nothing is done to the workers.
	dryRun bool
}

// holds returns why the NodeSet has to stay; empty when it may go. It never stays for an answer that cannot come: with its Controller goes
// the whole cluster, and without a RestApi no worker would ever be known to be drained.
func (d departure) holds() string {
	if d.workers == 0 || d.orphaned || !d.controller || !d.asked {
		return ""
	}
	if d.dryRun {
		return fmt.Sprintf("annotation %s keeps its %d workers, so the NodeSet stays as well", slinkyv1beta1.AnnotationDryRun, d.workers)
	}
	return fmt.Sprintf("%d workers are drained and deleted first, which takes until their jobs have ended; set spec.drainTimeout, such as 1s, to limit that", d.workers)
}

// ensureFinalizer gives a NodeSet the finalizer by which its deletion waits for its workers.
func (r *reconciler) ensureFinalizer(ctx context.Context, n *slinkyv1beta1.NodeSet) error {
	return reconcile.IgnoreGone(r.finalizer(ctx, n, slinkyv1beta1.FinalizerWorkers, controllerutil.AddFinalizer))
}

// finalizeWorkers lets a NodeSet go that is being deleted, as soon as it may. Its workers wake it. Until then it keeps watching whether Slurm loses
// its state, since no worker may go because of that.
func (r *reconciler) finalizeWorkers(ctx context.Context, n *slinkyv1beta1.NodeSet) (gone bool, again time.Time, err error) {
	if !slices.Contains(n.Finalizers, slinkyv1beta1.FinalizerWorkers) {
		return true, again, nil
	}
	d, err := r.departure(ctx, n)
	if err != nil {
		return false, again, err
	}
	if n.SavesPower() && d.controller && d.asked && !d.orphaned && !d.dryRun {
		if again, err = r.leavePoweredDown(ctx, n); err != nil || !again.IsZero() {
			return false, again, err
		}
	}
	if why := d.holds(); why != "" {
		// Events with the same text are counted, not repeated.
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "Draining", "Delete", "The NodeSet is being deleted: %s", why)
		again, err = r.rememberLeaving(ctx, n)
		return false, again, err
	}
	if d.workers > 0 && !d.orphaned {
		log.FromContext(ctx).Info("Let a NodeSet go without draining its workers, as there is no Slurm to ask", "workers", d.workers)
	}
	if d.workers == 0 && d.controller && d.asked && !controllerutil.ContainsFinalizer(n, slinkyv1beta1.FinalizerReservation) {
		if again, err = r.deleteDepartedNodes(ctx, n); err != nil || !again.IsZero() {
			return false, again, err
		}
	}
	r.absences.recall(n.UID, &nodesetplan.Input{})
	return true, again, reconcile.IgnoreGone(r.finalizer(ctx, n, slinkyv1beta1.FinalizerWorkers, controllerutil.RemoveFinalizer))
}

// leavePoweredDown drains the Slurm nodes without pods of a NodeSet that goes, such as those that are powered down: a job that is given one
// would wait for a worker that nobody makes. again is when to look again, as long as Slurm has not shown the drains. It waits for nothing
// while Slurm does not answer.
func (r *reconciler) leavePoweredDown(ctx context.Context, n *slinkyv1beta1.NodeSet) (again time.Time, err error) {
	l, ok := r.cacheOf(n)
	if !ok || l.Snapshot().Trust != slurmcache.Fresh {
		return again, nil
	}
	if l.Snapshot().Taken.Before(l.Written()) {
		return r.Clock.Now().Add(busyRetryInterval), nil
	}
	pods, err := r.pods(ctx, n)
	if err != nil {
		return again, err
	}
	if again, err = r.cleanUpOrphanedNodes(ctx, &scope{facts: facts{set: n, pods: pods}, plan: &plan{}}); err == nil && !again.IsZero() {
		again = r.Clock.Now().Add(busyRetryInterval)
	}
	return again, err
}

func (r *reconciler) departure(ctx context.Context, n *slinkyv1beta1.NodeSet) (departure, error) {
	d := departure{orphaned: slices.Contains(n.Finalizers, metav1.FinalizerOrphanDependents), dryRun: workerpod.DryRun(n)}
	var err error
	if d.workers, err = r.remaining(ctx, n); err != nil {
		return d, fmt.Errorf("listing the pods of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	var c slinkyv1beta1.Controller
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}, &c)
	if err != nil && !apierrors.IsNotFound(err) {
		return d, fmt.Errorf("reading Controller %s/%s: %w", n.Namespace, n.Spec.ControllerRef.Name, err)
	}
	d.controller = err == nil && c.DeletionTimestamp == nil
	var apis slinkyv1beta1.RestApiList
	if err := r.Client.List(ctx, &apis, client.InNamespace(n.Namespace),
		client.MatchingFields{reference.Index: reference.To("Controller", n.Spec.ControllerRef.Name)}); err != nil {
		return d, fmt.Errorf("listing the RestApis of Controller %s/%s: %w", n.Namespace, n.Spec.ControllerRef.Name, err)
	}
	d.asked = slices.ContainsFunc(apis.Items, func(a slinkyv1beta1.RestApi) bool { return a.DeletionTimestamp == nil })
	return d, nil
}

// remaining counts the workers of a NodeSet. When the cache has none, it asks the API server: a worker that was made just now may have a
// job, and not be in the cache yet.
func (r *reconciler) remaining(ctx context.Context, n *slinkyv1beta1.NodeSet) (int, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(n.Namespace), client.MatchingFields{kube.OwnerIndex: string(n.UID)})
	if err != nil || len(pods.Items) > 0 {
		return len(pods.Items), err
	}
	err = r.Live.List(ctx, &pods, client.InNamespace(n.Namespace), client.MatchingLabels(slurmd.Labels(n).Selector()))
	return len(slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, n) })), err
}

// deleteDepartedNodes deletes the records of the workers of a NodeSet that goes, as far as nothing needs them. The NodeSet does not wait
// for records: those that Slurm does not list, or refuses to delete, stay there. again is set only while another NodeSet asks Slurm.
func (r *reconciler) deleteDepartedNodes(ctx context.Context, n *slinkyv1beta1.NodeSet) (again time.Time, err error) {
	l, ok := r.cacheOf(n)
	if !ok || l.Snapshot().Trust != slurmcache.Fresh || workerpod.DryRun(n) {
		return again, nil
	}
	names, err := r.departedNodes(ctx, n, l.Snapshot())
	if err != nil || len(names) == 0 {
		return again, err
	}
	var deleted []string
	again, failure := r.callSlurm(ctx, n, func(ctx context.Context) error {
		confirmed, err := l.Confirm(ctx, names...) // an administrator may have changed the node since
		if err != nil {
			return err
		}
		if names, err = r.departedNodes(ctx, n, confirmed); err != nil || len(names) == 0 {
			return err
		}
		unnamed, err := l.Unnamed(ctx, names)
		if err != nil || len(unnamed) == 0 {
			return err
		}
		failures := l.Forget(ctx, unnamed)
		deleted = slices.DeleteFunc(unnamed, func(name string) bool { return failures[name] != nil })
		return failures.Err()
	})
	if len(deleted) > 0 {
		names := hostlist.Compress(deleted)
		log.FromContext(ctx).Info("Deleted records of Slurm nodes whose NodeSet goes", "nodes", names)
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "DefunctSlurmNodePruned", "Prune", "Deleted the records of Slurm nodes %s, because their NodeSet is being deleted", names)
	}
	if failure != nil {
		log.FromContext(ctx).Info("Left records of Slurm nodes whose NodeSet goes", "why", failure.Error())
	}
	return again, nil
}

// departedNodes returns the names of the records of a NodeSet that goes and that nothing needs, according to a snapshot.
func (r *reconciler) departedNodes(ctx context.Context, n *slinkyv1beta1.NodeSet, snapshot *slurmcache.Snapshot) ([]string, error) {
	var failure error
	names := nodesetplan.DepartedNodesToDelete(recordsOf(snapshot, n, nil), n.Name, string(n.UID), func(name string) bool {
		there, err := r.podExists(ctx, types.NamespacedName{Namespace: n.Namespace, Name: name})
		failure = errors.Join(failure, err)
		return there
	})
	return names, failure
}
