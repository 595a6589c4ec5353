// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmcluster reconciles SlurmClusters: it composes their component objects, applies them and rolls their
// status up. What the components are made of is their controllers' business.
package slurmcluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters/status,verbs=patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets;restapis,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings;nodesets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Prunes are the kinds of objects that are deleted when they are no longer composed. Each needs the index of
// kube.SetupIndexes. Controller, RestApi and LoginSet are not among them: every cluster has one.
func Prunes() []client.Object {
	return []client.Object{
		&slinkyv1beta1.Accounting{}, &slinkyv1beta1.NodeSet{},
		&corev1.ConfigMap{}, &corev1.Service{},
	}
}

type reconciler struct{ reconcile.Base }

// Reconcile brings one SlurmCluster a step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &nebiusv1.SlurmCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // what it owns is collected with it
	}
	if behind, err := r.Applier.Behind(ctx, cluster); err != nil || behind {
		return ctrl.Result{}, err
	}
	nodeSets, err := reference.NodeSetsOf(ctx, r.Client, cluster)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("gathering the facts about %s: %w", req, err)
	}
	out := compose.Cluster(compose.Input{Cluster: cluster, NodeSets: nodeSets})
	applyErr := r.apply(ctx, cluster, &out)
	seen, observeErr := r.observe(ctx, &out.Components)
	if observeErr != nil {
		return ctrl.Result{}, errors.Join(applyErr, observeErr)
	}
	before := cluster.DeepCopy()
	facts := Facts{Composed: out, Applied: applyErr == nil && len(out.Problems) == 0, Seen: seen, Now: r.Clock.Now()}
	summary := facts.Write(cluster)
	kube.Report(r.Recorder, cluster, &cluster.Status.Conditions, summary)
	_, statusErr := r.Applier.PatchStatus(ctx, before, cluster)
	if apierrors.IsConflict(statusErr) {
		statusErr = nil // somebody has changed the cluster, of which an event is on its way
	}
	return ctrl.Result{}, kube.IgnoreLeaving(errors.Join(applyErr, statusErr))
}

// apply writes what is composed and deletes what no longer is, unless the user has to correct something first. What only
// the server can find wrong joins the problems; what is left is worth a retry.
func (r *reconciler) apply(ctx context.Context, cluster *nebiusv1.SlurmCluster, out *compose.Output) error {
	if len(out.Problems) > 0 {
		return nil
	}
	desired := asClientObjects(out.Objects)
	result, err := r.Applier.Apply(ctx, cluster, desired...)
	if err == nil {
		var pruned kube.Result
		pruned, err = r.prune(ctx, cluster, out, desired)
		result = result.Join(pruned)
	}
	if result.Wrote() {
		log.FromContext(ctx).Info("Applied what was composed", "changes", result.String())
	}
	problems, rest := problem.FromError(err)
	out.Problems = append(out.Problems, problems...)
	return rest
}

// prune deletes what is no longer composed. With a NodeSet go its workers and their jobs, so that the server itself is
// asked whether it is really gone, and not only a cache that may be old.
func (r *reconciler) prune(ctx context.Context, cluster *nebiusv1.SlurmCluster, out *compose.Output, desired []client.Object) (kube.Result, error) {
	keep := desired
	for _, held := range out.Held {
		keep = append(keep, held.Object)
	}
	var composed slinkyv1beta1.NodeSetList
	if err := r.Client.List(ctx, &composed, client.InNamespace(cluster.Namespace),
		client.MatchingFields{kube.OwnerIndex: string(cluster.UID)}); err != nil {
		return kube.Result{}, fmt.Errorf("listing the NodeSets composed of %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	wanted := map[string]bool{}
	for _, set := range out.Components.NodeSets {
		wanted[set.Name] = true
	}
	for i := range composed.Items {
		set := &composed.Items[i]
		if wanted[set.Name] {
			continue
		}
		gone, err := r.removed(ctx, cluster, set)
		if err != nil {
			return kube.Result{}, err
		}
		if !gone {
			keep = append(keep, set)
		}
	}
	return r.Applier.Prune(ctx, cluster, keep, Prunes()...)
}

// removed asks the server whether a composed NodeSet has lost what it was composed of.
func (r *reconciler) removed(ctx context.Context, cluster *nebiusv1.SlurmCluster, composed *slinkyv1beta1.NodeSet) (bool, error) {
	name, ofNodeSet := composed.Labels[compose.LabelNodeSet]
	if !ofNodeSet {
		return true, nil // of slurmNodes.worker, and the cluster itself is what was just read
	}
	var source nebiusv1alpha1.NodeSet
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &source)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading NodeSet %s/%s: %w", cluster.Namespace, name, err)
	case source.DeletionTimestamp != nil:
		return true, nil
	}
	clusters, err := reference.SlurmClusters(ctx, r.Live, cluster.Namespace)
	if err != nil {
		return false, err
	}
	return compose.OwnerOf(&source, clusters) != cluster.Name, nil
}

func asClientObjects(objects []render.Object) []client.Object {
	out := make([]client.Object, len(objects))
	for i, o := range objects {
		out[i] = o
	}
	return out
}
