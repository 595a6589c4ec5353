// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// budgetName returns the name under which a check asks the disruption budget.
func budgetName(check types.NamespacedName) string { return "ActiveCheck " + check.String() }

// overBudgetError means that a node is not drained, since checks have taken enough workers of its NodeSet out of service.
type overBudgetError struct {
	node, set  string
	out, limit int
}

func (e *overBudgetError) Error() string {
	return fmt.Sprintf("node %s is not drained: checks have already taken %d of at most %d workers of NodeSet %s out of service (--max-nodes-drained-by-checks)",
		e.node, e.out, e.limit, e.set)
}

func isOverBudget(err error) bool {
	_, is := errors.AsType[*overBudgetError](err)
	return is
}

// errSilent means that Slurm does not answer now, so that it is not known who is drained.
var errSilent = errors.New("slurmrestd does not answer")

// drain drains the node of a failed job, unless the disruption budget of its NodeSet is on. Only this function takes nodes out of service for checks of
// Slurm jobs. A node that the disruption budget holds back is drained when another run finds it broken and others are back.
func (r *reconciler) drain(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, l *slurmcache.Cache, job types.UID, n activecheckplan.NodeReaction) error {
	snapshot := l.Snapshot()
	if snapshot.Trust != slurmcache.Fresh {
		return errSilent
	}
	set, workers, err := r.workersBeside(ctx, check, n.Node)
	if err != nil {
		return err
	}
	if len(workers) > 0 { // else it is no worker of a NodeSet
		key := client.ObjectKeyFromObject(check)
		known, _ := r.memory.get(key, job)
		if !slices.Contains(known.failed, n.Node) {
			known.failed = append(known.failed, n.Node)
			r.memory.put(key, job, known)
		}
		may := r.budgets.Ask(budget.Request{NodeSet: set, By: budgetName(key), Workers: shownAs(snapshot, workers), Wanted: wanted(snapshot, workers, known.failed)})
		if slices.Contains(may.Wait, n.Node) {
			return &overBudgetError{node: n.Node, set: set.Name, out: may.Out, limit: may.Limit}
		}
	}
	return l.Drain(ctx, []string{n.Node}, n.Drain)[n.Node]
}

// workersBeside returns the Slurm nodes of the NodeSet that a Slurm node belongs to; none if it is no worker.
func (r *reconciler) workersBeside(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, name string) (set types.NamespacedName, workers []string, err error) {
	pods, err := r.workers(ctx, check)
	if err != nil {
		return set, nil, err
	}
	of := map[string][]string{}
	for i := range pods {
		owner := metav1.GetControllerOfNoCopy(&pods[i])
		if owner == nil || owner.Kind != "NodeSet" {
			continue
		}
		worker := workerpod.SlurmNode(&pods[i])
		of[owner.Name] = append(of[owner.Name], worker)
		if worker == name {
			set = types.NamespacedName{Namespace: check.Namespace, Name: owner.Name}
		}
	}
	return set, of[set.Name], nil
}

// workers returns the worker pods of the cluster of a check. They belong to the cache and are only read.
func (r *reconciler) workers(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(check.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{slinkyv1beta1.LabelCluster: check.Spec.SlurmClusterRefName})
	if err != nil {
		return nil, fmt.Errorf("listing worker pods of namespace %s: %w", check.Namespace, err)
	}
	return list.Items, nil
}

// shownAs returns Slurm nodes as Slurm shows them.
func shownAs(snapshot *slurmcache.Snapshot, names []string) (out []budget.Worker) {
	for _, name := range names {
		out = append(out, budget.Worker{Node: name, State: snapshot.State(name), Reason: snapshot.Reason(name)})
	}
	return out
}

// wanted returns the workers of a NodeSet that a run has found broken, without those that Slurm shows drained by now: a person may take
// these back.
func wanted(snapshot *slurmcache.Snapshot, workers, failed []string) (out []string) {
	for _, w := range shownAs(snapshot, workers) {
		if slices.Contains(failed, w.Node) && !health.OutForCheck(w.State, w.Reason) {
			out = append(out, w.Node)
		}
	}
	return out
}
