// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset writes the status of NodeSets of group slurm.nebius.ai. It is their only writer, and all it does:
// the NodeSet of group slinky.slurm.net that each is composed to is applied with the rest of its SlurmCluster.
package nodeset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reference"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets/status,verbs=patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

type reconciler struct{ reconcile.Base }

// Setup registers the controller of NodeSets of group slurm.nebius.ai.
func Setup(_ context.Context, mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("NebiusNodeSet").
		For(&nebiusv1alpha1.NodeSet{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: base.Concurrency}).
		Watches(&slinkyv1beta1.NodeSet{}, handler.EnqueueRequestsFromMapFunc(sourceOf)).
		Watches(&nebiusv1.SlurmCluster{}, handler.EnqueueRequestsFromMapFunc(r.nodeSetsOf)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of NodeSet of slurm.nebius.ai: %w", err)
	}
	return nil
}

// sourceOf maps a composed NodeSet to the one that it is composed of.
func sourceOf(_ context.Context, o client.Object) []ctrl.Request {
	name := o.GetLabels()[compose.LabelNodeSet]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// nodeSetsOf maps a cluster to the NodeSets of its namespace: its own, and those that it may become the cluster of.
func (r *reconciler) nodeSetsOf(ctx context.Context, o client.Object) []ctrl.Request {
	var list nebiusv1alpha1.NodeSetList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the NodeSets of a SlurmCluster", "namespace", o.GetNamespace(), "cluster", o.GetName())
		return nil
	}
	out := make([]ctrl.Request, len(list.Items))
	for i := range list.Items {
		out[i] = ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
	}
	return out
}

// Reconcile brings the status of one NodeSet up to date.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	set := &nebiusv1alpha1.NodeSet{}
	if err := r.Client.Get(ctx, req.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if behind, err := r.Applier.Behind(ctx, set); err != nil || behind {
		return ctrl.Result{}, err
	}
	facts, err := r.gather(ctx, set)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("gathering the facts about NodeSet %s: %w", req, err)
	}
	before := set.DeepCopy()
	kube.Report(r.Recorder, set, &set.Status.Conditions, facts.Write(set))
	_, err = r.Applier.PatchStatus(ctx, before, set)
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // somebody has changed the NodeSet, of which an event is on its way
	}
	return ctrl.Result{}, err
}

func (r *reconciler) gather(ctx context.Context, set *nebiusv1alpha1.NodeSet) (Facts, error) {
	facts := Facts{Now: r.Clock.Now()}
	clusters, err := reference.SlurmClusters(ctx, r.Client, set.Namespace)
	if err != nil {
		return facts, err
	}
	facts.Owner = compose.OwnerOf(set, clusters)
	for i := range clusters {
		if clusters[i].Name == facts.Owner && clusters[i].DeletionTimestamp == nil {
			facts.Cluster = &clusters[i]
		}
	}
	if facts.Cluster == nil {
		return facts, nil
	}
	composed := &slinkyv1beta1.NodeSet{}
	key := types.NamespacedName{Namespace: set.Namespace, Name: compose.NodeSetName(facts.Owner, set.Name)}
	switch err := r.Client.Get(ctx, key, composed); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return facts, fmt.Errorf("reading NodeSet %s: %w", key, err)
	case composed.Labels[compose.LabelNodeSet] == set.Name:
		facts.Composed = composed
	}
	return facts, nil
}
