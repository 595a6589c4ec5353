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
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// orphanCheckInterval is how long after a write Slurm has to show it. A slurmctld that starts or rereads its configuration may lose the
// write, and shows no change then that would wake the NodeSet.
const orphanCheckInterval = 5 * time.Second

// namedCheckInterval is how long after a look at the jobs to check again whether one still names a node whose record is to go.
const namedCheckInterval = time.Minute

// cleanUpOrphanedNodes looks after the records of Slurm nodes that were workers of the NodeSet and have no pod. It keeps jobs from them,
// and deletes those whose Kubernetes nodes are gone, if the spec asks for that. After a write, again is when to look again.
func (r *reconciler) cleanUpOrphanedNodes(ctx context.Context, s *scope) (again time.Time, err error) {
	n, pods := s.facts.set, s.facts.pods
	l, ok := r.cacheOf(n)
	if !ok || l.Snapshot().Trust != slurmcache.Fresh {
		return again, nil
	}
	workers := make(map[string]bool, len(pods))
	for i := range pods {
		workers[workerpod.SlurmNode(&pods[i])] = true
	}
	records := recordsOf(l.Snapshot(), n, workers)
	if len(records) == 0 {
		return again, nil
	}
	var pruned, drained, named bool
	again, err = r.callSlurm(ctx, n, func(ctx context.Context) error {
		var drainErr, pruneErr error
		drained, drainErr = r.drainOrphanedNodes(ctx, l, n, records, s.plan.workers) // what concerns jobs comes first
		pruned, named, pruneErr = r.deleteOrphanedNodes(ctx, l, n, records, s.facts.workers)
		return errors.Join(drainErr, pruneErr)
	})
	if errors.Is(err, slurmcache.ErrClosed) {
		return time.Time{}, nil // the cluster goes, or another Slurm cache follows and reports all its nodes
	}
	switch {
	case pruned || drained:
		again = r.Clock.Now().Add(orphanCheckInterval)
	case named && again.IsZero():
		again = r.Clock.Now().Add(namedCheckInterval)
	}
	return again, err
}

// recordsOf returns the records of nodes that were workers of a NodeSet, without those that still are.
func recordsOf(snapshot *slurmcache.Snapshot, n *slinkyv1beta1.NodeSet, workers map[string]bool) (records []nodesetplan.OrphanedNode) {
	for found := range snapshot.Nodes() {
		if record, ok := orphanedNodeOf(found); ok && !workers[found.Name] && record.Comment.Namespace == n.Namespace && record.Comment.NodeSetName == n.Name {
			records = append(records, record)
		}
	}
	return records
}

// deleteOrphanedNodes deletes the records of Slurm nodes of the NodeSet whose Kubernetes node is gone, unless a job names them. It returns
// whether there were any, and whether some stay because a job names them or may do so.
func (r *reconciler) deleteOrphanedNodes(ctx context.Context, l *slurmcache.Cache, n *slinkyv1beta1.NodeSet, records []nodesetplan.OrphanedNode, facts nodesetplan.Input) (pruned, named bool, err error) {
	if !facts.Daemon || n.Spec.PruneSlurmNodeRecords != slinkyv1beta1.PruneNodeNotFound {
		return false, false, nil
	}
	defunct := nodesetplan.OrphanedNodesToDelete(records, n.Name, string(n.UID), facts)
	if len(defunct) == 0 {
		return false, false, nil
	}
	failures := l.ForgetUnnamed(ctx, defunct)
	deleted := slices.DeleteFunc(defunct, func(name string) bool { return failures[name] != nil })
	maps.DeleteFunc(failures, func(_ string, err error) bool {
		stays := errors.Is(err, slurmcache.ErrNamed)
		named = named || stays
		return stays
	})
	if len(deleted) == 0 {
		return false, named, failures.Err()
	}
	names := hostlist.Compress(deleted)
	log.FromContext(ctx).Info("Deleted records of Slurm nodes whose Kubernetes nodes are gone", "nodes", names)
	r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "DefunctSlurmNodePruned", "Prune", "Deleted the records of Slurm nodes %s, because their Kubernetes nodes are gone", names)
	return true, named, failures.Err()
}

// drainOrphanedNodes drains the nodes of workers that are gone, and returns whether there were any. The drain is one of ours, so it ends
// when such a worker comes back.
func (r *reconciler) drainOrphanedNodes(ctx context.Context, l *slurmcache.Cache, n *slinkyv1beta1.NodeSet, records []nodesetplan.OrphanedNode, plan nodesetplan.Plan) (bool, error) {
	expected := map[string]bool{}
	for _, place := range plan.Create {
		expected[place.PodName(n)] = true
	}
	if n.SavesPower() && n.DeletionTimestamp == nil {
		for ordinal := range int(n.Replicas()) { // Slurm may power them up, or its state of them has them made
			expected[n.PodName(ordinal)] = true
		}
	}
	var failure error
	undrained := nodesetplan.OrphanedNodesToDrain(records, n.Name, func(name string) bool {
		if expected[name] {
			return true
		}
		there, err := r.podExists(ctx, types.NamespacedName{Namespace: n.Namespace, Name: name})
		failure = errors.Join(failure, err)
		return there
	})
	if failure != nil || len(undrained) == 0 {
		return false, failure
	}
	failures := l.Drain(ctx, undrained, node.OurReason("Pod is gone"))
	undrained = slices.DeleteFunc(undrained, func(name string) bool { return errors.Is(failures[name], slurmcache.ErrHeld) })
	maps.DeleteFunc(failures, func(_ string, err error) bool { return errors.Is(err, slurmcache.ErrHeld) })
	if err := failures.Err(); err != nil || len(undrained) == 0 {
		return false, err
	}
	names := hostlist.Compress(undrained)
	log.FromContext(ctx).Info("Drained Slurm nodes that have no pods", "nodes", names)
	r.Recorder.Eventf(n, nil, corev1.EventTypeNormal, "Drained", "Drain", "Drained Slurm nodes %s, because their pods are gone", names)
	return true, nil
}

// podExists reports whether there is a pod by this name, whoever owns it.
func (r *reconciler) podExists(ctx context.Context, name types.NamespacedName) (bool, error) {
	err := r.Client.Get(ctx, name, &corev1.Pod{}, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Pod %s: %w", name, err)
	}
	return true, nil
}

// orphanedNodeOf reads the record of a node that was a worker of some NodeSet.
func orphanedNodeOf(n *rest.Node) (nodesetplan.OrphanedNode, bool) {
	comment, ok := node.ParseComment(n.Comment)
	return nodesetplan.OrphanedNode{
		Name: n.Name, State: node.Parse(n.State), Comment: comment,
		Reason:   slurmcache.ReasonOf(n),
		Reserved: n.Reservation != "" && n.Reservation != nodesetplan.ReservationName(comment.NodeSetName),
	}, ok && comment.NodeSetName != ""
}

// wake wakes the NodeSet whose worker a Slurm node was: when the node dies, when it would take jobs without having a pod, and, where Slurm
// powers workers up and down, when that changes or the worker has nothing to do. It also wakes the NodeSets that wait to hear of its jobs,
// and all NodeSets of the cluster when Slurm is trusted again.
func (r *reconciler) wake(ctx context.Context, queue reconcile.Queue, change slurmcache.Change) {
	for _, key := range r.interest.about(change) {
		queue.Add(ctrl.Request{NamespacedName: key})
	}
	l, ok := r.caches.Get(change.Cluster)
	if !ok {
		return
	}
	if change.Node == "" {
		r.wakeAll(ctx, queue, change.Cluster)
		return
	}
	found, _ := l.Snapshot().Node(change.Node)
	if found == nil {
		return
	}
	record, ok := orphanedNodeOf(found)
	if !ok || record.Comment.Namespace != change.Cluster.Namespace {
		return
	}
	power := nodesetplan.PowerNode{State: record.State}
	concerned := record.Dead() == node.Yes || power.Off()
	if record.Open() == node.Yes {
		there, err := r.podExists(ctx, types.NamespacedName{Namespace: record.Comment.Namespace, Name: record.Comment.PodName})
		concerned = concerned || err != nil || !there
	}
	key := types.NamespacedName{Namespace: record.Comment.Namespace, Name: record.Comment.NodeSetName}
	if concerned || record.State.Busy() == node.No && r.savesPower(ctx, key) {
		queue.Add(ctrl.Request{NamespacedName: key})
	}
}

// savesPower reports whether Slurm powers the workers of a NodeSet up and down. An idle worker that has registered shows what the others
// are made of.
func (r *reconciler) savesPower(ctx context.Context, key types.NamespacedName) bool {
	var n slinkyv1beta1.NodeSet
	return r.Client.Get(ctx, key, &n, client.UnsafeDisableDeepCopy) == nil && n.SavesPower()
}

// wakeAll wakes the NodeSets of a cluster.
func (r *reconciler) wakeAll(ctx context.Context, queue reconcile.Queue, cluster slurmcache.Key) {
	var sets slinkyv1beta1.NodeSetList
	err := r.Client.List(ctx, &sets, client.InNamespace(cluster.Namespace),
		client.MatchingFields{reference.Index: reference.To("Controller", cluster.Name)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the NodeSets of a cluster", "cluster", cluster.String())
		return
	}
	for i := range sets.Items {
		queue.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
	}
}
