// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// maxOutOfServiceNodes is the length in bytes to which a list of Slurm nodes is cut in the status.
const maxOutOfServiceNodes = 1024

// outOfService groups the workers whose Slurm nodes get no new jobs by the reasons on their pods.
func outOfService(pods []corev1.Pod) []slinkyv1beta1.NodeSetOutOfService {
	groups, names := map[string]*slinkyv1beta1.NodeSetOutOfService{}, map[string][]string{}
	for i := range pods {
		c := workerpod.Condition(&pods[i], slinkyv1beta1.PodConditionOutOfService)
		if c == nil || c.Status != corev1.ConditionTrue {
			continue
		}
		g := groups[c.Reason]
		if g == nil {
			g = &slinkyv1beta1.NodeSetOutOfService{Reason: c.Reason}
			groups[c.Reason] = g
		}
		g.Count++
		if since := c.LastTransitionTime; !since.IsZero() && (g.Since == nil || since.Before(g.Since)) {
			g.Since = &since
		}
		names[c.Reason] = append(names[c.Reason], workerpod.SlurmNode(&pods[i]))
	}
	var out []slinkyv1beta1.NodeSetOutOfService
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		g := groups[reason]
		g.Nodes = shortened(hostlist.Compress(names[reason]))
		out = append(out, *g)
	}
	return out
}

// budgetChanges wakes the NodeSets whose workers begin or cease to wait for the disruption budget.
func (r *reconciler) budgetChanges() source.Source {
	return source.Func(func(_ context.Context, queue reconcile.Queue) error {
		r.budgets.Notify(func(set types.NamespacedName) { queue.Add(ctrl.Request{NamespacedName: set}) })
		return nil
	})
}

// drainsPaused reports which workers wait until checks may take more out of service: by a condition, which a NodeSet without such workers
// never has, and by one event when the waiting begins.
func drainsPaused(n *slinkyv1beta1.NodeSet, b budget.Status, out *reconcile.Report) {
	before := meta.FindStatusCondition(n.Status.Conditions, slinkyv1beta1.ConditionDrainsByChecksPaused)
	if !b.Known || len(b.Waiting) == 0 && before == nil {
		return
	}
	if len(b.Waiting) == 0 {
		out.SetCondition(slinkyv1beta1.ConditionDrainsByChecksPaused, metav1.ConditionFalse, slinkyv1beta1.ReasonWithinLimit, "no worker waits to be drained by a check")
		return
	}
	text := fmt.Sprintf("checks have taken %d of %d workers out of service, and --max-nodes-drained-by-checks allows %d; %d more wait to be taken out: %s",
		b.Out, b.Workers, b.Limit, len(b.Waiting), shortened(hostlist.Compress(b.Waiting)))
	out.SetCondition(slinkyv1beta1.ConditionDrainsByChecksPaused, metav1.ConditionTrue, slinkyv1beta1.ReasonLimitReached, text)
	if before == nil || before.Status != metav1.ConditionTrue {
		out.Events = append(out.Events, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: slinkyv1beta1.ConditionDrainsByChecksPaused, Action: "DrainBudget", Note: text,
		})
	}
}

// shortened returns a host list cut to fit into a status.
func shortened(list string) string {
	if len(list) > maxOutOfServiceNodes {
		return list[:maxOutOfServiceNodes-3] + "..."
	}
	return list
}
