// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// SlurmNodeIndex is the cache's index of worker pods by cluster and Slurm node, as made by SlurmNodeKey.
	SlurmNodeIndex = "coxswain.dev/slurm-node"
	// KubernetesNodeIndex is the cache's index of worker pods by the Kubernetes node that they run on.
	KubernetesNodeIndex = "coxswain.dev/kubernetes-node"
)

// SlurmNodeKey returns the index entry of a Slurm node; the entry of an empty name stands for all nodes of the cluster.
func SlurmNodeKey(cluster, node string) string { return cluster + "/" + node }

// OfSlurmNode lists the worker pods of a Slurm node by the index, or of all nodes of a cluster if the name is empty. They belong to the
// cache and are only read.
func OfSlurmNode(ctx context.Context, reader client.Reader, namespace, cluster, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := reader.List(ctx, &pods, client.InNamespace(namespace), client.MatchingFields{SlurmNodeIndex: SlurmNodeKey(cluster, node)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of Slurm node %q of cluster %s/%s: %w", node, namespace, cluster, err)
	}
	return pods.Items, nil
}
