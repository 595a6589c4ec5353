// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerrequest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// Change is what becomes of nodes: Resume adds them to those that are to run, Suspend takes them away.
type Change bool

// The changes.
const (
	Suspend Change = false
	Resume  Change = true
)

// Nodes are nodes of one namespace, in groups.
type Nodes struct {
	Client    client.Client
	Namespace string
	Groups    []Group
	Log       *slog.Logger
	// Every is how often Wait looks.
	Every time.Duration
}

// Find returns those nodes of a host list whose NodeSets have ephemeral nodes. The others are logged and left out: Slurm may
// power nodes whose pods always run.
func Find(ctx context.Context, n Nodes, list string) (Nodes, error) {
	groups, others, err := Split(list)
	if err != nil {
		return n, err
	}
	for _, name := range others {
		n.Log.Info("skipped a node whose name is not that of a worker", "node", name)
	}
	n.Groups = nil
	for _, g := range groups {
		var set nebiusv1alpha1.NodeSet
		err := n.Client.Get(ctx, n.key(g), &set)
		switch {
		case apierrors.IsNotFound(err):
			n.Log.Info("skipped nodes of a NodeSet that does not exist", "nodes", g.names(g.Ordinals))
		case err != nil:
			return n, fmt.Errorf("reading NodeSet %s: %w", n.key(g), err)
		case !set.Spec.EphemeralNodes:
			n.Log.Info("skipped nodes of a NodeSet without ephemeral nodes", "nodes", g.names(g.Ordinals))
		default:
			n.Groups = append(n.Groups, g)
		}
	}
	return n, nil
}

func (n Nodes) key(g Group) types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: g.NodeSet}
}

// Change makes a change of all the nodes. The change of one NodeSet neither waits for that of another nor fails with it.
func (n Nodes) Change(ctx context.Context, change Change) error {
	var failures []error
	for _, g := range n.Groups {
		failures = append(failures, n.change(ctx, g, change))
	}
	return errors.Join(failures...)
}

// change changes one NodeSetPowerState, again when it was changed meanwhile.
func (n Nodes) change(ctx context.Context, g Group, change Change) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var state nebiusv1alpha1.NodeSetPowerState
		if err := n.Client.Get(ctx, n.key(g), &state); err != nil {
			return err
		}
		active := changed(state.Spec.ActiveNodes, g.Ordinals, change)
		if slices.Equal(active, state.Spec.ActiveNodes) {
			return nil
		}
		state.Spec.ActiveNodes = active
		if err := n.Client.Update(ctx, &state); err != nil {
			return err
		}
		n.Log.Info("changed the nodes that are to run", "nodes", g.names(g.Ordinals), "run", bool(change), "active", len(active))
		return nil
	})
	if err != nil {
		return fmt.Errorf("changing NodeSetPowerState %s: %w", n.key(g), err)
	}
	return nil
}

// changed returns a set of ordinals with or without others. One in which nothing changes is returned as it is.
func changed(active, ordinals []int32, change Change) []int32 {
	if len(missing(active, ordinals, change)) == 0 {
		return active
	}
	if change == Resume {
		active = slices.Concat(active, ordinals)
	} else {
		active = slices.DeleteFunc(slices.Clone(active), func(o int32) bool { return slices.Contains(ordinals, o) })
	}
	slices.Sort(active)
	return slices.Compact(active)
}

// missing returns the ordinals for which a change has not been made.
func missing(active, ordinals []int32, change Change) []int32 {
	return slices.DeleteFunc(slices.Clone(ordinals), func(o int32) bool { return slices.Contains(active, o) == bool(change) })
}

// Wait waits until a change has been made of all the nodes, by anybody. It does not look at pods. The error of one that
// ends without success names the nodes for which it has not.
func (n Nodes) Wait(ctx context.Context, change Change) error {
	tick := time.NewTicker(n.Every)
	defer tick.Stop()
	for {
		waits, err := n.waits(ctx, change)
		if err == nil && len(waits) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %v: %w", waits, context.Cause(ctx)), err)
		case <-tick.C:
		}
	}
}

// waits returns the nodes for which a change has not been made, as host lists.
func (n Nodes) waits(ctx context.Context, change Change) (lists []string, err error) {
	for _, g := range n.Groups {
		var state nebiusv1alpha1.NodeSetPowerState
		if failure := n.Client.Get(ctx, n.key(g), &state); failure != nil {
			err = errors.Join(err, fmt.Errorf("reading NodeSetPowerState %s: %w", n.key(g), failure))
			lists = append(lists, g.names(g.Ordinals))
			continue
		}
		if left := missing(state.Spec.ActiveNodes, g.Ordinals, change); len(left) > 0 {
			lists = append(lists, g.names(left))
		}
	}
	return lists, err
}
