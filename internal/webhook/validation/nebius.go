// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"
	"slices"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

func (l lookup) slurmCluster(ctx context.Context, c *nebiusv1.SlurmCluster) (Findings, error) {
	var f Findings
	out, err := l.compose(ctx, c, nil)
	if err != nil {
		return f, err
	}
	f.add(out.Output)
	f.Warnings = append(f.Warnings, out.Unresolved...)
	for _, set := range out.Components.NodeSets {
		if set.Labels[compose.LabelNodeSet] != "" {
			continue // its own object tells of it
		}
		if err := l.namesakes(ctx, set, "spec.slurmNodes.worker.size", "set it to 0 and use NodeSets of slurm.nebius.ai with other names", &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (l lookup) nebiusNodeSet(ctx context.Context, set *nebiusv1alpha1.NodeSet) (Findings, error) {
	var f Findings
	cluster, found, err := l.ownerOf(ctx, set)
	if err != nil {
		return f, err
	}
	if !found {
		// The cluster may be the next object of the same file. What is wrong with a NodeSet is so under any.
		f.Warnings = append(f.Warnings, fmt.Sprintf("SlurmCluster %q does not exist yet; the NodeSet has no workers before it does", cluster.Name))
	}
	out := compose.NodeSet(cluster, set)
	f.add(render.Output{Problems: out.Problems, Ignored: out.Ignored})
	f.Warnings = append(f.Warnings, out.Notes...)
	err = l.namesakes(ctx, out.Object, "metadata.name", "give the NodeSet another name", &f)
	return f, err
}

// compose composes a SlurmCluster, with edited in place of the NodeSet of its name, and without it when edited is being deleted.
func (l lookup) compose(ctx context.Context, cluster *nebiusv1.SlurmCluster, edited *nebiusv1alpha1.NodeSet) (compose.Output, error) {
	sets, err := reference.NodeSetsOf(ctx, l.live, cluster)
	if err != nil {
		return compose.Output{}, err
	}
	for i := range sets {
		if edited != nil && sets[i].Name == edited.Name {
			sets[i] = *edited
		}
	}
	sets = slices.DeleteFunc(sets, func(set nebiusv1alpha1.NodeSet) bool {
		return edited != nil && set.Name == edited.Name && set.DeletionTimestamp != nil
	})
	return compose.Cluster(compose.Input{Cluster: cluster, NodeSets: sets, Observed: compose.Observed{Installed: compose.AllInstalled()}, Release: l.release}), nil
}

// ownerOf is the SlurmCluster of a NodeSet. When there is none yet, it is one with only its name.
func (l lookup) ownerOf(ctx context.Context, set *nebiusv1alpha1.NodeSet) (cluster *nebiusv1.SlurmCluster, found bool, err error) {
	clusters, err := reference.SlurmClusters(ctx, l.live, set.Namespace)
	if err != nil {
		return nil, false, err
	}
	owner := compose.OwnerOf(set, clusters)
	if i := slices.IndexFunc(clusters, func(c nebiusv1.SlurmCluster) bool { return c.Name == owner }); i >= 0 {
		return &clusters[i], true, nil
	}
	cluster = &nebiusv1.SlurmCluster{}
	cluster.Namespace, cluster.Name = set.Namespace, owner
	return cluster, false, nil
}

func (lookup) nodeConfigurator(_ context.Context, n *nebiusv1alpha1.NodeConfigurator) (Findings, error) {
	var f Findings
	out := compose.NodeConfigurator(n, image.Set{})
	f.add(out.Output)
	f.Warnings = append(f.Warnings, out.Notes...)
	return f, nil
}
