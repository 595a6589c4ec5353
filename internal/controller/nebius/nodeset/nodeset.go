// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset writes the status of NodeSets of group slurm.nebius.ai, and makes the NodeSetPowerStates of those with ephemeral nodes.
// The NodeSet of group slinky.slurm.net that each becomes is applied with the rest of its SlurmCluster.
package nodeset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"

	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets/status,verbs=patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesetpowerstates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

type reconciler struct{ reconcile.Base }

// Setup registers the controller of NodeSets of group slurm.nebius.ai.
func Setup(_ context.Context, mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	return r.kind().Setup(mgr, reconcile.Watches{Owns: []client.Object{&nebiusv1alpha1.NodeSetPowerState{}}, Other: func(b *builder.Builder) {
		b.Watches(&slinkyv1beta1.NodeSet{}, handler.EnqueueRequestsFromMapFunc(reference.SourceOf))
		b.Watches(&nebiusv1.SlurmCluster{}, handler.EnqueueRequestsFromMapFunc(r.nodeSetsOf))
	}})
}

func (r *reconciler) kind() *reconcile.Kind[*nebiusv1alpha1.NodeSet, facts, *plan, struct{}] {
	return &reconcile.Kind[*nebiusv1alpha1.NodeSet, facts, *plan, struct{}]{
		Base:   &r.Base,
		Name:   "NebiusNodeSet",
		New:    func() *nebiusv1alpha1.NodeSet { return &nebiusv1alpha1.NodeSet{} },
		Effect: compose.Effect,
		Gather: r.gather,
		Decide: decide,
		Report: report,
	}
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

// facts are what is known about a NodeSet.
type facts struct {
	// set is the NodeSet itself; owner is the name of its SlurmCluster, empty if it has none; cluster is that object, nil if it does not
	// exist.
	set     *nebiusv1alpha1.NodeSet
	owner   string
	cluster *nebiusv1.SlurmCluster
	// composed is the NodeSet of group slinky.slurm.net that it becomes; nil if that does not exist yet.
	composed *slinkyv1beta1.NodeSet
	// power is the NodeSetPowerState of its name; nil if there is none.
	power *nebiusv1alpha1.NodeSetPowerState
}

func (r *reconciler) gather(ctx context.Context, set *nebiusv1alpha1.NodeSet) (facts, error) {
	f := facts{set: set}
	power := &nebiusv1alpha1.NodeSetPowerState{}
	switch err := r.Client.Get(ctx, client.ObjectKeyFromObject(set), power); {
	case err == nil:
		f.power = power
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("reading the NodeSetPowerState of NodeSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	clusters, err := reference.SlurmClusters(ctx, r.Client, set.Namespace)
	if err != nil {
		return f, err
	}
	f.owner = compose.OwnerOf(set, clusters)
	for i := range clusters {
		if clusters[i].Name == f.owner && clusters[i].DeletionTimestamp == nil {
			f.cluster = &clusters[i]
		}
	}
	if f.cluster == nil {
		return f, nil
	}
	composed := &slinkyv1beta1.NodeSet{}
	key := types.NamespacedName{Namespace: set.Namespace, Name: compose.NodeSetName(f.owner, set.Name)}
	switch err := r.Client.Get(ctx, key, composed); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return f, fmt.Errorf("reading NodeSet %s: %w", key, err)
	case composed.Labels[compose.LabelNodeSet] == set.Name:
		f.composed = composed
	}
	return f, nil
}

// plan is the checked spec and the NodeSetPowerState. The SlurmCluster's reconciler applies what a NodeSet is composed to.
type plan struct{ reconcile.Plan }

func decide(f facts) *plan {
	cluster := f.cluster
	if cluster == nil {
		cluster = &nebiusv1.SlurmCluster{} // what has no effect has none under any
	}
	spec := compose.NodeSet(cluster, f.set)
	p := &plan{}
	p.Ignored, p.Notes = spec.Ignored, spec.Notes
	switch {
	case f.owner == "":
		p.Problems = problem.List{problem.Waitingf("spec.clusterName", slinkyv1beta1.ReasonReferenceNotFound,
			"must name a SlurmCluster; there is none in the namespace")}
	case f.cluster == nil:
		p.Problems = problem.List{problem.Waitingf("spec.clusterName", slinkyv1beta1.ReasonReferenceNotFound, "SlurmCluster %s does not exist", f.owner)}
	default:
		p.Problems = spec.Problems
	}
	switch {
	case f.set.Spec.EphemeralNodes && f.cluster != nil:
		p.Add(compose.PowerState(f.set))
	case !f.set.Spec.EphemeralNodes && f.power != nil:
		p.Delete = append(p.Delete, f.power)
	}
	return p
}
