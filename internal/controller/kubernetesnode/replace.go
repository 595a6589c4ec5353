// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// confirmTimeout is how long the answers that confirm a deletion may take.
const confirmTimeout = 30 * time.Second

// replace deletes a Node once Slurm has confirmed that nothing runs there. The deletion holds for the version of the Node that the decision
// was about: a change since then comes first.
func (r *reconciler) replace(ctx context.Context, node *corev1.Node) error {
	if err := r.confirm(ctx, node.Name); err != nil {
		return fmt.Errorf("deleting Node %s, so that its machine is replaced: %w", node.Name, err)
	}
	step, facts, err := r.decide(ctx, node)
	if err != nil || step == nil || !step.Delete {
		return err // Slurm's answer wakes this node when it changed something
	}
	uid, version := node.UID, node.ResourceVersion
	err = r.Client.Delete(ctx, &corev1.Node{ObjectMeta: node.ObjectMeta}, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("deleting Node %s: %w: set nodeReplacement of the operator's chart, which gives the right", node.Name, err)
	case err != nil:
		return fmt.Errorf("deleting Node %s: %w", node.Name, err)
	}
	log.FromContext(ctx).Info("Deleted a Node, so that its machine is replaced", "maintenance", facts.Maintenance.Type, "ready", string(facts.Ready.Status),
		"workers", len(facts.Workers))
	r.tell(node, step.Event)
	return nil
}

// confirm asks the Slurm clusters of the workers on a Kubernetes node for a fresh answer.
func (r *reconciler) confirm(ctx context.Context, name string) error {
	pods, err := r.podsOn(ctx, workerpod.KubernetesNodeIndex, name)
	if err != nil {
		return err
	}
	nodes := map[slurmcache.Key][]string{}
	for i := range pods {
		key := slurmcache.Key{Namespace: pods[i].Namespace, Name: pods[i].Labels[slinkyv1beta1.LabelCluster]}
		nodes[key] = append(nodes[key], workerpod.SlurmNode(&pods[i]))
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	for key, names := range nodes {
		if l, ok := r.caches.Get(key); ok { // without a Slurm cache nothing is known about a worker, and no Node is deleted
			if _, err := l.Confirm(ctx, names...); err != nil {
				return err
			}
		}
	}
	return nil
}
