// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
)

// Setup registers the controller of SlurmClusters. definitions has the metadata of other operators' CRDs, if they are there. Labels of
// Kubernetes nodes below topologyLabels give their place in the network.
func Setup(_ context.Context, mgr ctrl.Manager, base reconcile.Base, definitions kube.Definitions, topologyLabels string) error {
	r := &reconciler{Base: base, definitions: definitions, later: kube.NewLater(mgr, &nebiusv1.SlurmCluster{}), topologyLabels: topologyLabels}
	specs := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	err := r.kind().Setup(mgr, reconcile.Watches{
		Owns: []client.Object{
			&slinkyv1beta1.Controller{}, &slinkyv1beta1.Accounting{}, &slinkyv1beta1.RestApi{}, &slinkyv1beta1.LoginSet{}, &slinkyv1beta1.NodeSet{}, &slinkyv1beta1.Token{},
			&corev1.ConfigMap{}, &corev1.Service{},
			&batchv1.Job{}, &appsv1.Deployment{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{},
		},
		Other: func(b *builder.Builder) {
			b.Watches(&nebiusv1alpha1.NodeSet{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf), specs)
			b.Watches(&nebiusv1alpha1.ActiveCheck{}, handler.EnqueueRequestsFromMapFunc(clusterOfCheck), builder.WithPredicates(requirementChanges()))
			b.Watches(&nebiusv1.SlurmCluster{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(comesOrGoes()))
			b.Watches(&corev1.Pod{}, soon(clusterOfWorker), builder.WithPredicates(placementChanges()))
			b.Watches(&corev1.Node{}, soon(r.clustersInNetworks), builder.WithPredicates(r.locationChanges()))
			r.watchDefinitions(b)
			r.later.Join(b)
		},
	})
	if err != nil {
		return err
	}
	return (&keptClaimsReporter{Base: base}).setup(mgr)
}

func (r *reconciler) kind() *reconcile.Kind[*nebiusv1.SlurmCluster, facts, *plan, Seen] {
	return &reconcile.Kind[*nebiusv1.SlurmCluster, facts, *plan, Seen]{
		Base:    &r.Base,
		New:     func() *nebiusv1.SlurmCluster { return &nebiusv1.SlurmCluster{} },
		Effect:  compose.Effect,
		Gather:  r.gather,
		Decide:  decide,
		Observe: r.observe,
		Report:  report,
		Prunes:  Prunes(),
	}
}

// clusterOf maps a NodeSet to its cluster.
func (r *reconciler) clusterOf(ctx context.Context, o client.Object) []ctrl.Request {
	set, ok := o.(*nebiusv1alpha1.NodeSet)
	if !ok {
		return nil
	}
	clusters, err := reference.SlurmClusters(ctx, r.Client, set.Namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the cluster of a NodeSet", "namespace", set.Namespace, "nodeSet", set.Name)
		return nil
	}
	name := compose.OwnerOf(set, clusters)
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: set.Namespace, Name: name}}}
}

// neighbours maps a cluster to the other clusters of its namespace: the oldest of them gets the NodeSets that name no cluster.
func (r *reconciler) neighbours(ctx context.Context, o client.Object) []ctrl.Request {
	clusters, err := reference.SlurmClusters(ctx, r.Client, o.GetNamespace())
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the neighbours of a SlurmCluster", "namespace", o.GetNamespace(), "cluster", o.GetName())
		return nil
	}
	var out []ctrl.Request
	for i := range clusters {
		if clusters[i].Name != o.GetName() {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&clusters[i])})
		}
	}
	return out
}

func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// clusterOfCheck maps an ActiveCheck to its cluster.
func clusterOfCheck(_ context.Context, o client.Object) []ctrl.Request {
	check, ok := o.(*nebiusv1alpha1.ActiveCheck)
	if !ok {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: check.Namespace, Name: check.Spec.SlurmClusterRefName}}}
}

// requirementChanges lets through the changes of ActiveChecks that are required, or were before.
func requirementChanges() predicate.Predicate {
	requires := func(o client.Object) bool {
		check, ok := o.(*nebiusv1alpha1.ActiveCheck)
		return ok && check.Spec.RequiredBeforeJobs
	}
	return predicate.And(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	}), predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return requires(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return requires(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return requires(e.ObjectOld) || requires(e.ObjectNew) },
	})
}
