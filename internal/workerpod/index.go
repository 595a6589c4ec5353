// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

const (
	// SlurmNodeIndex is the cache's index of worker pods by cluster and Slurm node, as made by SlurmNodeKey.
	SlurmNodeIndex = "coxswain.dev/slurm-node"
	// KubernetesNodeIndex is the cache's index of worker pods by the Kubernetes node that they run on.
	KubernetesNodeIndex = "coxswain.dev/kubernetes-node"
)

// SlurmNodeKey is the index entry of a Slurm node; that of an empty name stands for all nodes of the cluster.
func SlurmNodeKey(cluster, node string) string { return cluster + "/" + node }
