// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference looks up the objects that specs refer to, for controllers and the webhook.
package reference

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
)

// SlurmClusters returns the SlurmClusters of a namespace, which decide where a NodeSet that names none belongs.
func SlurmClusters(ctx context.Context, c client.Reader, namespace string) ([]nebiusv1.SlurmCluster, error) {
	var list nebiusv1.SlurmClusterList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the SlurmClusters of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// NodeSetsOf returns the NodeSets that belong to a SlurmCluster, without those that are being deleted.
func NodeSetsOf(ctx context.Context, c client.Reader, cluster *nebiusv1.SlurmCluster) ([]nebiusv1alpha1.NodeSet, error) {
	clusters, err := SlurmClusters(ctx, c, cluster.Namespace)
	if err != nil {
		return nil, err
	}
	var list nebiusv1alpha1.NodeSetList
	if err := c.List(ctx, &list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the NodeSets of namespace %s: %w", cluster.Namespace, err)
	}
	var out []nebiusv1alpha1.NodeSet
	for i := range list.Items {
		if set := &list.Items[i]; set.DeletionTimestamp == nil && compose.OwnerOf(set, clusters) == cluster.Name {
			out = append(out, *set)
		}
	}
	return out, nil
}

// SourceOf maps a composed NodeSet to the name of its NodeSet of slurm.nebius.ai, which is also the name of its NodeSetPowerState; to
// nothing where it was not composed.
func SourceOf(_ context.Context, o client.Object) []ctrl.Request {
	name := o.GetLabels()[compose.LabelNodeSet]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}
