// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// renewRecords deletes the records of Slurm nodes whose workers are about to be made and register with something else than the workers before. A
// worker is left out of the plan while the deletion of its record is tried again; a record that somebody else holds stays, and its worker
// is made. Records are not known until Slurm answers, which takes a moment after the operator has started. No worker is made as long as the
// Controller reports that Slurm is reachable, nor for as long again while the deletion of a record is tried. Otherwise workers are made all
// the same. Their pods show what is wrong when they run.
func (r *reconciler) renewRecords(ctx context.Context, s *scope) (again time.Time, err error) {
	n, in, plan := s.facts.set, s.facts.input, &s.now
	key := client.ObjectKeyFromObject(n)
	if len(plan.Create) == 0 {
		r.renewals.failed(key, r.Clock.Now(), false)
		return again, nil
	}
	l, ok := r.cacheOf(n)
	if !ok || l.Snapshot().Trust != slurmcache.Fresh {
		reachable := meta.IsStatusConditionTrue(in.Controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
		again = r.renewals.trying(key, r.Clock.Now(), reachable)
		if !again.IsZero() {
			plan.Create = nil // the Slurm cache's news, and a change of the condition, wake the NodeSet
		}
		return again, nil
	}
	pod, err := slurmd.Pod(in, plan.Create[0], "") // all are alike in what they register with
	if err != nil {
		return again, err
	}
	outdated, err := r.outdated(ctx, n, pod, l.Snapshot(), plan.Create)
	if err != nil || len(outdated) == 0 {
		r.renewals.failed(key, r.Clock.Now(), false)
		return again, err
	}
	var failures slurmcache.Failures
	var maintained hostlist.Set
	busy, err := r.callSlurm(ctx, n, func(ctx context.Context) error {
		confirmed, err := l.Confirm(ctx, outdated...) // an administrator may have changed the node since
		if err != nil {
			failures = unconfirmed(outdated, err)
			return nil
		}
		still, err := r.outdated(ctx, n, pod, confirmed, plan.Create)
		if err != nil {
			return err
		}
		outdated = slices.DeleteFunc(outdated, func(name string) bool { // a node that is not listed may be there all the same
			listed, _ := confirmed.Node(name)
			return listed != nil && !slices.Contains(still, name)
		})
		maintained, failures = r.forget(ctx, n, l, outdated, s.seen)
		return nil
	})
	if err != nil {
		return again, err
	}
	wait := func(names []string) {
		plan.Create = slices.DeleteFunc(slices.Clone(plan.Create), func(p workerpod.Place) bool { return slices.Contains(names, slurmName(n, pod, p)) })
	}
	if !busy.IsZero() {
		wait(outdated)
		return busy, nil
	}
	r.tellRenewed(ctx, n, outdated, failures)
	// The worker of a node that something holds, such as somebody's reservation, is made all the same.
	maps.DeleteFunc(failures, func(name string, err error) bool { return rest.NodesBusy(err) && !maintained.Contains(name) })
	if again = r.renewals.failed(key, r.Clock.Now(), len(failures) > 0); !again.IsZero() {
		wait(slices.Collect(maps.Keys(failures)))
	}
	return again, nil // those made all the same show it on their pods
}

// tellRenewed reports which outdated records were deleted, and why some were not.
func (r *reconciler) tellRenewed(ctx context.Context, n *slinkyv1beta1.NodeSet, outdated []string, failures slurmcache.Failures) {
	deleted := slices.DeleteFunc(slices.Clone(outdated), func(name string) bool { return failures[name] != nil })
	if names := hostlist.Compress(deleted); len(deleted) > 0 {
		log.FromContext(ctx).Info("Deleted records of Slurm nodes whose workers register with something else now", "nodes", names)
		r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, slinkyv1beta1.ReasonSlurmNodeRecordOutdated, "Prune",
			"Deleted the records of Slurm nodes %s, because their workers now register with other values", names)
	}
	if err := failures.Err(); err != nil {
		log.FromContext(ctx).Info("Could not delete records of Slurm nodes whose workers register with something else now", "why", err.Error())
	}
}

// unconfirmed returns records that nobody tried to delete, because Slurm did not confirm them.
func unconfirmed(names []string, err error) slurmcache.Failures {
	failures := slurmcache.Failures{}
	for _, name := range names {
		failures[name] = err
	}
	return failures
}

// forget deletes records, and takes their nodes out of the maintenance of their NodeSet. It returns which were in that, and why some are
// left, such as those that jobs name while slurmctld may be about to read its configuration.
func (r *reconciler) forget(ctx context.Context, n *slinkyv1beta1.NodeSet, l *slurmcache.Cache, names []string, seen *observation) (maintained hostlist.Set, failures slurmcache.Failures) {
	maintained, err := r.leaveMaintenance(ctx, n, l, names, seen)
	if err != nil {
		return nil, unconfirmed(names, err)
	}
	return maintained, l.Renew(ctx, names)
}

// renewals are since when records of NodeSets could not be deleted. It may be lost.
type renewals struct {
	since perkey.Memory[types.NamespacedName, time.Time]
}

// failed notes whether a deletion failed, and returns when to try it again; zero when new workers do not wait for it any more.
func (r *renewals) failed(set types.NamespacedName, now time.Time, failed bool) (again time.Time) {
	return r.decide(set, nodesetplan.Renewal{Now: now, Heard: true, Failed: failed})
}

// trying notes that Slurm does not answer, and returns when to look again; zero when new workers do not wait for that any more.
func (r *renewals) trying(set types.NamespacedName, now time.Time, reachable bool) (again time.Time) {
	return r.decide(set, nodesetplan.Renewal{Now: now, Reachable: reachable})
}

func (r *renewals) decide(set types.NamespacedName, facts nodesetplan.Renewal) (again time.Time) {
	r.since.Change(set, func(since *time.Time) bool {
		facts.Since = *since
		wait := nodesetplan.Renew(facts)
		*since, again = wait.Since, wait.Again
		return !since.IsZero()
	})
	return again
}

// outdated returns the records that stand in the way of workers that are about to be made.
func (r *reconciler) outdated(ctx context.Context, n *slinkyv1beta1.NodeSet, pod *corev1.Pod, snapshot *slurmcache.Snapshot, places []workerpod.Place) ([]string, error) {
	var coming []nodesetplan.NewWorker
	var records []nodesetplan.OrphanedNode
	for _, place := range places {
		c := nodesetplan.NewWorker{Slurm: slurmName(n, pod, place), Node: place.Node}
		found, _ := snapshot.Node(c.Slurm)
		if found == nil {
			continue
		}
		record, ok := orphanedNodeOf(found)
		if !ok || record.Comment.Namespace != n.Namespace {
			continue
		}
		there, err := r.podExists(ctx, types.NamespacedName{Namespace: n.Namespace, Name: record.Comment.PodName})
		if err != nil {
			return nil, err
		}
		if !there { // or another worker stands behind it, or one that the cache does not know of yet
			coming, records = append(coming, c), append(records, record)
		}
	}
	if len(coming) == 0 {
		return nil, nil
	}
	var failure error
	outdated, held := nodesetplan.Outdated(records, coming, slurmd.Registration(pod), func(kubeNode string) bool {
		gone, err := r.kubeNodeGone(ctx, kubeNode)
		failure = errors.Join(failure, err)
		return gone
	})
	if len(held) > 0 {
		log.FromContext(ctx).Info("Kept records of Slurm nodes, in which somebody has a say", "nodes", hostlist.Compress(held))
	}
	return outdated, failure
}

func (r *reconciler) kubeNodeGone(ctx context.Context, name string) (bool, error) {
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &corev1.Node{}, client.UnsafeDisableDeepCopy)
	if err == nil || apierrors.IsNotFound(err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("reading the Kubernetes node %s: %w", name, err)
}

// slurmName returns the name in Slurm of a worker like pod that is about to be made in a place; empty when it follows from a Kubernetes
// node that is not known yet.
func slurmName(n *slinkyv1beta1.NodeSet, pod *corev1.Pod, place workerpod.Place) string {
	switch {
	case pod.Spec.HostNetwork:
		return place.Node
	case n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet:
		return place.Hostname
	default:
		return n.Hostname(place.Ordinal)
	}
}
