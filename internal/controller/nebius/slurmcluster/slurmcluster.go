// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmcluster reconciles SlurmClusters: it composes their component objects, applies them and rolls up their status. The
// controllers of the components do the rest.
package slurmcluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters/status,verbs=patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=loginsets;restapis,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings;nodesets;tokens,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=jailedconfigs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Prunes returns the kinds of objects that are deleted when they are no longer composed. Each needs the index of
// kube.SetupIndexes. Controller, RestApi and LoginSet are not among them: every cluster has one.
func Prunes() []client.Object {
	return []client.Object{
		&slinkyv1beta1.Accounting{}, &slinkyv1beta1.NodeSet{}, &slinkyv1beta1.Token{},
		&corev1.ConfigMap{}, &corev1.Service{}, &nebiusv1alpha1.JailedConfig{},
		&batchv1.Job{}, &appsv1.Deployment{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{},
	}
}

type reconciler struct {
	reconcile.Base
	// definitions has the CRDs of other operators.
	definitions kube.Definitions
	// later watches those kinds of theirs whose status matters.
	later *kube.Later
	// topologyLabels is the prefix of the labels <prefix>/tier-N of Kubernetes nodes.
	topologyLabels string
}

// facts are what is known about a SlurmCluster.
type facts struct{ compose.Input }

func (r *reconciler) gather(ctx context.Context, cluster *nebiusv1.SlurmCluster) (facts, error) {
	nodeSets, err := reference.NodeSetsOf(ctx, r.Client, cluster)
	if err != nil {
		return facts{}, err
	}
	observed, err := r.observed(ctx, cluster, nodeSets)
	if err != nil {
		return facts{}, err
	}
	if observed.Installed, err = r.installed(ctx); err != nil {
		return facts{}, err
	}
	if observed.Rest, err = r.rest(ctx, cluster); err != nil {
		return facts{}, err
	}
	observed.Populate, err = r.populate(ctx, cluster, nodeSets)
	if err != nil {
		return facts{}, err
	}
	required, pods, err := r.checks(ctx, cluster)
	return facts{compose.Input{Cluster: cluster, NodeSets: nodeSets, HasChecks: pods, RequiredChecks: required, Observed: observed, Images: r.Images}}, err
}

// checks returns the names of the ActiveChecks that have to pass before workers of a cluster take jobs, sorted, and whether it has any that
// are pods.
func (r *reconciler) checks(ctx context.Context, cluster *nebiusv1.SlurmCluster) (required []string, pods bool, err error) {
	var list nebiusv1alpha1.ActiveCheckList
	if err := r.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, false, fmt.Errorf("listing the ActiveChecks of namespace %s: %w", cluster.Namespace, err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if c.DeletionTimestamp != nil || c.Spec.SlurmClusterRefName != cluster.Name {
			continue
		}
		pods = pods || c.Spec.CheckType != nebiusv1alpha1.CheckTypeSlurmJob
		if c.Spec.RequiredBeforeJobs {
			required = append(required, c.Name)
		}
	}
	slices.Sort(required)
	return required, pods, nil
}

// observed reads what exists of a cluster. It asks the server about composed NodeSets whose source the cache does not show.
func (r *reconciler) observed(ctx context.Context, cluster *nebiusv1.SlurmCluster, nodeSets []nebiusv1alpha1.NodeSet) (compose.Observed, error) {
	var out compose.Observed
	var composed slinkyv1beta1.NodeSetList
	if err := r.Client.List(ctx, &composed, client.InNamespace(cluster.Namespace),
		client.MatchingFields{kube.OwnerIndex: string(cluster.UID)}); err != nil {
		return out, fmt.Errorf("listing the NodeSets composed of %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	for i := range composed.Items {
		set := compose.ObservedNodeSet{Object: &composed.Items[i]}
		source, sourced := set.Object.Labels[compose.LabelNodeSet]
		if sourced && !slices.ContainsFunc(nodeSets, func(n nebiusv1alpha1.NodeSet) bool { return n.Name == source }) {
			gone, err := r.removed(ctx, cluster, source)
			if err != nil {
				return out, err
			}
			set.SourceGone = node.AnswerOf(gone)
		}
		out.NodeSets = append(out.NodeSets, set)
	}
	var err error
	out.Workers, err = r.workers(ctx, cluster)
	return out, err
}

// removed asks the server whether a cluster has lost a NodeSet.
func (r *reconciler) removed(ctx context.Context, cluster *nebiusv1.SlurmCluster, name string) (bool, error) {
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

// plan is what is to be done for a SlurmCluster.
type plan struct {
	reconcile.Plan
	composed compose.Output
}

func decide(f facts) *plan {
	out := compose.Cluster(f.Input)
	p := &plan{Plan: reconcile.Plan{Output: out.Output, Notes: out.Notes}, composed: out}
	for _, unwanted := range out.UnwantedDatabase(f.Cluster, f.Observed.Installed) {
		p.Delete = append(p.Delete, unwanted)
	}
	if unwanted := out.UnwantedProfile(f.Cluster, f.Observed.Installed); unwanted != nil {
		p.Delete = append(p.Delete, unwanted)
	}
	if unwanted := out.UnwantedPodMonitor(f.Cluster, f.Observed.Installed); unwanted != nil {
		p.Delete = append(p.Delete, unwanted)
	}
	for _, held := range out.Held {
		p.Keep = append(p.Keep, held.Object)
	}
	for _, kept := range out.Kept {
		p.Keep = append(p.Keep, kept)
	}
	if out.Jail.Awaited {
		for _, set := range out.Components.NodeSets {
			p.Keep = append(p.Keep, set)
		}
	}
	if out.Jail.Job != nil {
		p.Keep = append(p.Keep, out.Jail.Job)
	}
	for i, o := range p.Objects {
		if job, ok := o.(*batchv1.Job); ok {
			p.Objects[i] = kube.Recreate(job) // it is composed only when it is to run
		}
	}
	return p
}

// Setup registers the controller of SlurmClusters. definitions has the metadata of other operators' CRDs, if they are there. Labels of
// Kubernetes nodes below topologyLabels give their place in the network.
func Setup(_ context.Context, mgr ctrl.Manager, base reconcile.Base, definitions kube.Definitions, topologyLabels string) error {
	r := &reconciler{Base: base, definitions: definitions, later: kube.NewLater(mgr, &nebiusv1.SlurmCluster{}), topologyLabels: topologyLabels}
	specs := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	err := r.kind().Setup(mgr, reconcile.Watches{
		Owns: []client.Object{
			&slinkyv1beta1.Controller{}, &slinkyv1beta1.Accounting{}, &slinkyv1beta1.RestApi{}, &slinkyv1beta1.LoginSet{}, &slinkyv1beta1.NodeSet{}, &slinkyv1beta1.Token{},
			&corev1.ConfigMap{}, &corev1.Service{}, &nebiusv1alpha1.JailedConfig{},
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

// requirementChanges lets through the changes of ActiveChecks that are required, or were before, and the coming and going of all: those that
// are pods share an account.
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
		UpdateFunc: func(e event.UpdateEvent) bool { return requires(e.ObjectOld) || requires(e.ObjectNew) },
	})
}
