// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

func (l lookup) slurmCluster(ctx context.Context, c *nebiusv1.SlurmCluster) (findings, error) {
	var f findings
	var clusters nebiusv1.SlurmClusterList
	var sets nebiusv1alpha1.NodeSetList
	if err := l.list(ctx, c.Namespace, &clusters, &sets); err != nil {
		return f, err
	}
	in := compose.Input{Cluster: c}
	for i := range sets.Items {
		if compose.OwnerOf(&sets.Items[i], clusters.Items) == c.Name {
			in.NodeSets = append(in.NodeSets, sets.Items[i])
		}
	}
	out := compose.Cluster(in)
	f.add(out.Output)
	f.warnings = append(f.warnings, out.Unresolved...)
	return f, nil
}

func (l lookup) nebiusNodeSet(ctx context.Context, set *nebiusv1alpha1.NodeSet) (findings, error) {
	var f findings
	var clusters nebiusv1.SlurmClusterList
	if err := l.list(ctx, set.Namespace, &clusters); err != nil {
		return f, err
	}
	owner := compose.OwnerOf(set, clusters.Items)
	cluster := &nebiusv1.SlurmCluster{}
	cluster.Namespace, cluster.Name = set.Namespace, owner
	if i := slices.IndexFunc(clusters.Items, func(c nebiusv1.SlurmCluster) bool { return c.Name == owner }); i >= 0 {
		cluster = &clusters.Items[i]
	} else {
		// The cluster may be the next object of the same file. What is wrong with a NodeSet is so under any.
		f.warnings = append(f.warnings, fmt.Sprintf("SlurmCluster %q does not exist yet; the NodeSet has no workers before it does", owner))
	}
	out := compose.NodeSet(cluster, set)
	f.add(render.Output{Problems: out.Problems, Ignored: out.Ignored})
	f.warnings = append(f.warnings, out.Notes...)
	return f, nil
}

func (l lookup) list(ctx context.Context, namespace string, lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := l.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing %T of %s: %w", list, namespace, err)
		}
	}
	return nil
}
