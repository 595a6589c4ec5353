// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workerpod reads the labels, annotations and conditions of worker pods and their NodeSets. It is a leaf, for all packages that
// deal with workers.
package workerpod

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// ShowsState reports whether the pod shows this state by Slurm's last answer about the worker's node; see node.AllConditions.
func ShowsState(p *corev1.Pod, state string) bool {
	c := Condition(p, corev1.PodConditionType(node.ConditionPrefix+state))
	return c != nil && c.Status == corev1.ConditionTrue
}

// Condition returns the condition of that type, or nil.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// Ordinal returns the number at the end of the name of a pod made in scaling mode StatefulSet.
func Ordinal(p *corev1.Pod) int {
	number, err := strconv.Atoi(p.Name[strings.LastIndexByte(p.Name, '-')+1:])
	if err != nil {
		return -1
	}
	return number
}

// SlurmNode returns the name of a worker's node in Slurm.
func SlurmNode(p *corev1.Pod) string {
	switch {
	case p.Spec.HostNetwork:
		return p.Spec.NodeName
	case p.Spec.Hostname != "":
		return p.Spec.Hostname
	default:
		return p.Name
	}
}

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
