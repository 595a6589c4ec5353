// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notserved shows the owners of JailedConfigs that no sconfigcontroller serves them: by condition Ready False with reason NotServed
// and by an event. Manifests of the predecessor have such objects, and whoever applies them must not wait in vain.
package notserved

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=jailedconfigs,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=jailedconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters;nodesets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup registers the controller.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	base.Concurrency = 1
	kind := &reconcile.Kind[*nebiusv1alpha1.JailedConfig, struct{}, *reconcile.Plan, struct{}]{
		Base:   &base,
		New:    func() *nebiusv1alpha1.JailedConfig { return &nebiusv1alpha1.JailedConfig{} },
		Skip:   kept(&base),
		Gather: func(context.Context, *nebiusv1alpha1.JailedConfig) (struct{}, error) { return struct{}{}, nil },
		Decide: decide,
		Report: func(*nebiusv1alpha1.JailedConfig, reconcile.Outcome[struct{}, *reconcile.Plan, struct{}]) reconcile.Report {
			return reconcile.Report{}
		},
	}
	return kind.Setup(mgr, reconcile.Watches{Other: withClusters(&base)})
}

// kept reports whether a JailedConfig belongs to sconfigcontroller: it has written a status, or a SlurmCluster of the namespace runs it, so
// that it will. A status has one writer.
func kept(base *reconcile.Base) func(context.Context, *nebiusv1alpha1.JailedConfig) (bool, error) {
	return func(ctx context.Context, c *nebiusv1alpha1.JailedConfig) (bool, error) {
		if meta.FindStatusCondition(c.Status.Conditions, nebiusv1alpha1.ConditionFilesWritten) != nil {
			return true, nil
		}
		clusters, err := reference.SlurmClusters(ctx, base.Client, c.Namespace)
		if err != nil {
			return false, err
		}
		for i := range clusters {
			nodeSets, err := reference.NodeSetsOf(ctx, base.Client, &clusters[i])
			if err != nil {
				return false, err
			}
			if compose.WritesFiles(compose.Input{Cluster: &clusters[i], NodeSets: nodeSets}) {
				return true, nil
			}
		}
		return false, nil
	}
}

// withClusters looks at the JailedConfigs of a namespace when a SlurmCluster of it changes or goes.
func withClusters(base *reconcile.Base) func(*builder.Builder) {
	neighbours := func(ctx context.Context, cluster client.Object) []ctrl.Request {
		var list nebiusv1alpha1.JailedConfigList
		if err := base.Client.List(ctx, &list, client.InNamespace(cluster.GetNamespace())); err != nil {
			log.FromContext(ctx).Error(err, "Could not find the JailedConfigs of a namespace", "namespace", cluster.GetNamespace())
			return nil
		}
		var out []ctrl.Request
		for i := range list.Items {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return out
	}
	return func(b *builder.Builder) {
		b.Watches(&nebiusv1.SlurmCluster{}, handler.EnqueueRequestsFromMapFunc(neighbours), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
}

// decide returns an empty plan.
func decide(struct{}) *reconcile.Plan {
	var p reconcile.Plan
	p.Problems = problem.List{problem.Errorf("spec", nebiusv1alpha1.ReasonNotServed,
		"no SlurmCluster of this namespace runs sconfigcontroller, which writes the files into the jail. A SlurmCluster with a jail runs it unless spec.sConfigController.node.size is 0")}
	return &p
}
