// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package powerstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// slurmCallTimeout is how long a pass waits for Slurm.
const slurmCallTimeout = 5 * time.Second

// drive passes requests on to Slurm, and shows in spec.activeNodes what Slurm wants.
func (r *reconciler) drive(ctx context.Context, state *nebiusv1alpha1.NodeSetPowerState, f facts, p *plan, _ *struct{}) error {
	if !p.asked {
		return nil
	}
	err := r.request(ctx, state, f, p)
	return errors.Join(err, r.show(ctx, state, p))
}

// request has Slurm power nodes up and down. It first asks what Slurm wants by now: a request that is made twice would undo what somebody
// else has asked for meanwhile.
func (r *reconciler) request(ctx context.Context, state *nebiusv1alpha1.NodeSetPowerState, f facts, p *plan) error {
	l, ok := r.cacheOf(f.composed)
	if !ok || len(p.nodes.Up)+len(p.nodes.Down) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, slurmCallTimeout)
	defer cancel()
	snapshot, err := l.Confirm(limited, f.names(slices.Concat(p.nodes.Up, p.nodes.Down))...)
	if errors.Is(err, slurmcache.ErrClosed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking Slurm which nodes of NodeSet %s/%s it wants: %w", state.Namespace, f.set.Name, err)
	}
	f.hear(snapshot)
	confirmed := decide(f).nodes
	failures := slurmcache.Failures{}
	for _, change := range []struct {
		action   string
		ordinals []int32
		make     func(context.Context, []string) slurmcache.Failures
	}{
		{"PowerUp", confirmed.Up, l.PowerUp}, {"PowerDown", confirmed.Down, l.PowerDown},
	} {
		names := f.names(change.ordinals)
		if len(names) == 0 {
			continue
		}
		refused := change.make(limited, names)
		maps.Copy(failures, refused)
		names = slices.DeleteFunc(names, func(name string) bool { return refused[name] != nil })
		if len(names) > 0 {
			list := hostlist.Compress(names)
			log.FromContext(ctx).Info("Passed a request for power on to Slurm", "action", change.action, "nodes", list)
			r.Recorder.Eventf(state, nil, corev1.EventTypeNormal, change.action, change.action, "%s", kube.Note(
				fmt.Sprintf("%s was changed: asked Slurm for %s of %s", activeNodesPath, change.action, list)))
		}
	}
	maps.DeleteFunc(failures, func(_ string, err error) bool {
		return errors.Is(err, slurmcache.ErrHeld) || errors.Is(err, slurmcache.ErrClosed)
	})
	return failures.Err()
}

// names returns the Slurm nodes of ordinals.
func (f *facts) names(ordinals []int32) (out []string) {
	for _, ordinal := range ordinals {
		out = append(out, f.nodes[ordinal].name)
	}
	return out
}

// show writes what Slurm wants, and that it has been shown, in one patch. If somebody else has changed the object meanwhile, the next pass
// sees the change.
func (r *reconciler) show(ctx context.Context, state *nebiusv1alpha1.NodeSetPowerState, p *plan) error {
	note, noted := state.Annotations[nebiusv1alpha1.AnnotationActiveNodes]
	if noted && note == join(p.nodes.Shown) && sameSet(p.nodes.Active, state.Spec.ActiveNodes) {
		return nil
	}
	before := state.DeepCopy()
	if !sameSet(p.nodes.Active, state.Spec.ActiveNodes) {
		state.Spec.ActiveNodes = p.nodes.Active
	}
	if state.Annotations == nil {
		state.Annotations = map[string]string{}
	}
	state.Annotations[nebiusv1alpha1.AnnotationActiveNodes] = join(p.nodes.Shown)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Patch(ctx, state, patch, client.FieldOwner(kube.FieldManager)); {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		before.DeepCopyInto(state) // an event of the change is on its way
		return nil
	case err != nil:
		return fmt.Errorf("writing spec.activeNodes of NodeSetPowerState %s/%s: %w", state.Namespace, state.Name, err)
	}
	r.Applier.Wrote(state, state)
	return nil
}

// sameSet reports whether two lists have the same ordinals. The first is in order.
func sameSet(ordered, other []int32) bool {
	return slices.Equal(ordered, slices.Compact(slices.Sorted(slices.Values(other))))
}
