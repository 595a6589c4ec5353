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
	"sigs.k8s.io/controller-runtime/pkg/client"

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
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Prunes returns the kinds of objects that are deleted when they are no longer composed. Each needs the index of
// kube.SetupIndexes. Controller, RestApi and LoginSet are not among them: every cluster has one.
func Prunes() []client.Object {
	return []client.Object{
		&slinkyv1beta1.Accounting{}, &slinkyv1beta1.NodeSet{}, &slinkyv1beta1.Token{},
		&corev1.ConfigMap{}, &corev1.Service{},
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
	required, err := r.requiredChecks(ctx, cluster)
	return facts{compose.Input{Cluster: cluster, NodeSets: nodeSets, RequiredChecks: required, Observed: observed, Images: r.Images}}, err
}

// requiredChecks returns the names of the ActiveChecks that have to pass before workers of a cluster take jobs, sorted.
func (r *reconciler) requiredChecks(ctx context.Context, cluster *nebiusv1.SlurmCluster) (out []string, err error) {
	var list nebiusv1alpha1.ActiveCheckList
	if err := r.Client.List(ctx, &list, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ActiveChecks of namespace %s: %w", cluster.Namespace, err)
	}
	for i := range list.Items {
		if c := &list.Items[i]; c.Spec.RequiredBeforeJobs && c.DeletionTimestamp == nil && c.Spec.SlurmClusterRefName == cluster.Name {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out, nil
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
