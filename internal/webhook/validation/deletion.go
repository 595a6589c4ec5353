// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// DeletionWarnings returns what the deletion of a NodeSet does to jobs: those on its workers, and those of the partition that goes with it.
// Of other kinds there are none. The error is what did not answer; what is known without it is returned as well.
func DeletionWarnings(ctx context.Context, live client.Reader, obj client.Object, how metav1.DeletionPropagation) ([]string, error) {
	look := newLookup(ctx, live, obj.GetNamespace(), "")
	var out []string
	var err error
	switch set := obj.(type) {
	case *slinkyv1beta1.NodeSet:
		out, err = look.departing(ctx, departing{set: set, name: set.Name, source: "its status", how: how})
	case *nebiusv1alpha1.NodeSet:
		out, err = look.departingComposed(ctx, set)
	default:
		return nil, nil
	}
	gone, ok := obj.DeepCopyObject().(client.Object)
	if err != nil || !ok {
		return out, err
	}
	gone.SetDeletionTimestamp(&metav1.Time{})
	gone.SetFinalizers(nil)
	waits, name, err := look.goes(ctx, obj, gone)
	if waits.Any() {
		out = append(out, fmt.Sprintf("Controller %s: when the NodeSet is gone, %s; %s", name, waits.Kept(), countedLater))
	}
	return out, err
}

// departing is a NodeSet that is about to be deleted.
type departing struct {
	set *slinkyv1beta1.NodeSet
	// name is the name that its user gave it, and source where the numbers are from.
	name, source string
	how          metav1.DeletionPropagation
}

// departing returns what becomes of the workers of a NodeSet, and on how many jobs run.
func (l lookup) departing(ctx context.Context, d departing) ([]string, error) {
	s := &d.set.Status
	if s.ObservedGeneration > 0 && s.Replicas == 0 || d.how == metav1.DeletePropagationOrphan || workerpod.DryRun(d.set) {
		return nil, nil
	}
	c := &slinkyv1beta1.Controller{}
	found, err := l.get(ctx, d.set.Namespace, d.set.Spec.ControllerRef.Name, c)
	if !found {
		c = nil
	}
	fate := d.fate(c)
	if err != nil {
		fate = "are deleted"
	}
	if s.ObservedGeneration == 0 {
		return []string{fmt.Sprintf("NodeSet %s: its workers %s; it is not known on how many of them jobs run, because it has no status yet", d.name, fate)}, err
	}
	text := fmt.Sprintf("NodeSet %s: its %d workers %s; jobs run on %d of them", d.name, s.Replicas, fate, s.SlurmAllocated)
	if unknown := s.Replicas - s.SlurmAllocated - s.SlurmIdle - s.SlurmDown; unknown > 0 {
		text += fmt.Sprintf(", and for %d it is not known", unknown)
	}
	return []string{text + ", as " + d.source + " says"}, err
}

// fate returns what becomes of the workers. c is the Controller, nil for none.
//
//	case                                what happens             why
//	Kubernetes deletes the pods first   they go, with jobs       --cascade=foreground asks for that
//	no Controller that stays            they go, with jobs       the whole cluster goes
//	no RestApi                          they go, with jobs       Slurm cannot be asked
//	else                                they are drained         drainTimeout, which the user writes, bounds it
func (d departing) fate(c *slinkyv1beta1.Controller) string {
	const atOnce = "are deleted at once, with their jobs: "
	if d.how == metav1.DeletePropagationForeground {
		return atOnce + "Kubernetes deletes the pods first, by --cascade=foreground"
	}
	if c == nil || c.DeletionTimestamp != nil {
		return atOnce + "Controller " + d.set.Spec.ControllerRef.Name + " does not exist, or is being deleted"
	}
	if reachable := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable); reachable != nil && reachable.Reason == slinkyv1beta1.ReasonNoRestAPI {
		return atOnce + "there is no RestApi, so Slurm cannot be asked whether jobs run on them"
	}
	fate := "are drained, and each is deleted when nothing runs there"
	if limit := d.set.Spec.DrainTimeout; limit != nil && limit.Duration > 0 {
		fate += fmt.Sprintf(", or after %s (spec.drainTimeout) with its jobs", limit.Duration)
	}
	return fate
}

// departingComposed returns the same for the workers of a NodeSet of slurm.nebius.ai.
func (l lookup) departingComposed(ctx context.Context, set *nebiusv1alpha1.NodeSet) ([]string, error) {
	clusters, err := reference.SlurmClusters(ctx, l.live, set.Namespace)
	if err != nil {
		return nil, err
	}
	sets, err := l.nodeSets()
	if err != nil {
		return nil, err
	}
	composed := compose.NodeSetName(compose.OwnerOf(set, clusters), set.Name)
	for i := range sets {
		if sets[i].Name == composed {
			return l.departing(ctx, departing{set: &sets[i], name: set.Name, source: "the status of NodeSet " + composed + " of slinky.slurm.net"})
		}
	}
	return nil, nil
}
