// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstate

import (
	"cmp"
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// facts are what is known about a NodeSetPowerState.
type facts struct {
	state *nebiusv1alpha1.NodeSetPowerState
	// set is the NodeSet that it names, nil if there is none. composed is what that NodeSet is composed to, nil while there is nothing.
	set      *nebiusv1alpha1.NodeSet
	composed *slinkyv1beta1.NodeSet
	// asked reports whether nodes has what Slurm reports now.
	asked bool
	// reachable reports whether Slurm answers, according to the Controller: an answer is on its way, or Slurm has missed one.
	reachable bool
	nodes     map[int32]slurmNode
	pods      map[int32]pod
}

// slurmNode is the Slurm node of a worker.
type slurmNode struct {
	name string
	// known reports whether Slurm has it.
	known bool
	state node.State
	// held reports whether somebody else has drained it or set it DOWN.
	held bool
}

// pod is what the status shows of a pod.
type pod struct {
	name, node     string
	phase          corev1.PodPhase
	ready, leaving bool
}

func podOf(p *corev1.Pod) pod {
	ready := workerpod.Condition(p, corev1.PodReady)
	return pod{
		name: p.Name, node: workerpod.SlurmNode(p), phase: p.Status.Phase, ready: ready != nil && ready.Status == corev1.ConditionTrue, leaving: p.DeletionTimestamp != nil,
	}
}

func (r *reconciler) gather(ctx context.Context, state *nebiusv1alpha1.NodeSetPowerState) (facts, error) {
	f := facts{state: state}
	key := types.NamespacedName{Namespace: state.Namespace, Name: state.Spec.NodeSetRef}
	set := &nebiusv1alpha1.NodeSet{}
	switch err := r.Client.Get(ctx, key, set); {
	case apierrors.IsNotFound(err):
		return f, nil
	case err != nil:
		return f, fmt.Errorf("reading NodeSet %s: %w", key, err)
	}
	f.set = set
	clusters, err := reference.SlurmClusters(ctx, r.Client, state.Namespace)
	if err != nil {
		return f, err
	}
	key.Name = compose.NodeSetName(compose.OwnerOf(set, clusters), set.Name)
	composed := &slinkyv1beta1.NodeSet{}
	switch err := r.Client.Get(ctx, key, composed); {
	case apierrors.IsNotFound(err):
		return f, nil
	case err != nil:
		return f, fmt.Errorf("reading NodeSet %s: %w", key, err)
	case composed.Labels[compose.LabelNodeSet] != set.Name || !composed.SavesPower():
		return f, nil
	}
	f.composed = composed
	if f.pods, err = r.pods(ctx, composed); err != nil {
		return f, err
	}
	if l, ok := r.cacheOf(composed); ok {
		f.hear(l.Snapshot())
	}
	if !f.asked {
		f.reachable, err = r.reachable(ctx, composed)
	}
	return f, err
}

// reachable reports whether Slurm answers according to the Controller of a NodeSet.
func (r *reconciler) reachable(ctx context.Context, composed *slinkyv1beta1.NodeSet) (bool, error) {
	key := types.NamespacedName{Namespace: composed.Namespace, Name: composed.Spec.ControllerRef.Name}
	controller := &slinkyv1beta1.Controller{}
	switch err := r.Client.Get(ctx, key, controller); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading Controller %s: %w", key, err)
	}
	return reachable(controller), nil
}

func reachable(controller *slinkyv1beta1.Controller) bool {
	return meta.IsStatusConditionTrue(controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
}

func (r *reconciler) cacheOf(composed *slinkyv1beta1.NodeSet) (*slurmcache.Cache, bool) {
	return r.caches.Get(slurmcache.Key{Namespace: composed.Namespace, Name: composed.Spec.ControllerRef.Name})
}

// pods returns the pods of the workers, by ordinal.
func (r *reconciler) pods(ctx context.Context, composed *slinkyv1beta1.NodeSet) (map[int32]pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(composed.Namespace), client.MatchingFields{kube.OwnerIndex: string(composed.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of NodeSet %s/%s: %w", composed.Namespace, composed.Name, err)
	}
	out := map[int32]pod{}
	for i := range list.Items {
		if ordinal := workerpod.Ordinal(&list.Items[i]); ordinal >= 0 && ordinal <= math.MaxInt32 {
			out[int32(ordinal)] = podOf(&list.Items[i])
		}
	}
	return out, nil
}

// hear takes what Slurm reports of all nodes that the NodeSet may have, and of those that spec.activeNodes names.
func (f *facts) hear(snapshot *slurmcache.Snapshot) {
	f.asked = snapshot.Trust == slurmcache.Fresh
	f.nodes = map[int32]slurmNode{}
	if !f.asked {
		return
	}
	for ordinal := range f.ordinals() {
		n := slurmNode{name: cmp.Or(f.pods[ordinal].node, f.composed.Hostname(int(ordinal)))}
		if found, _ := snapshot.Node(n.name); found != nil {
			n.known, n.state = true, snapshot.State(n.name)
			n.held = node.HeldBy(n.state, slurmcache.ReasonOf(found)) == node.SomebodyElse
		}
		f.nodes[ordinal] = n
	}
}

// ordinals returns all ordinals about which there may be something to report.
func (f *facts) ordinals() map[int32]bool {
	out := map[int32]bool{}
	for ordinal := range f.composed.Replicas() {
		out[ordinal] = true
	}
	for ordinal := range f.pods {
		out[ordinal] = true
	}
	for _, ordinals := range [][]int32{f.state.Spec.ActiveNodes, shown(f.state)} {
		for _, ordinal := range ordinals {
			out[ordinal] = true
		}
	}
	return out
}
