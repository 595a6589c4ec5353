// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// scope is one reconcile of a worker.
type scope struct {
	pod *corev1.Pod
	set *slinkyv1beta1.NodeSet
	// cache is that of its Slurm cluster; nil when there is none.
	cache *slurmcache.Cache
	// node is its name in Slurm.
	node string
	// maxWrites is how many pods may be written to at once now.
	maxWrites int
	// pending reports whether Slurm has not been asked since we last changed the node, or deleted its record. There is nothing to decide until
	// it has.
	pending bool
	// version is the version of the pod, as it was read or as our last write left it.
	version string
	// worker is what was gathered, action what follows from it.
	worker workerplan.Worker
	action workerplan.Action
}

// decide decides what follows from what was gathered, and traces the rules that did.
func (s *scope) decide(ctx context.Context) {
	s.action = workerplan.Next(s.worker)
	reconcile.TraceRules(ctx, s.action.Rules)
}

// gather collects what Kubernetes has about one worker.
func (r *reconciler) gather(ctx context.Context, pod *corev1.Pod, set *slinkyv1beta1.NodeSet) (*scope, error) {
	host, err := r.host(ctx, pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	s := &scope{pod: pod, set: set, node: workerpod.SlurmNode(pod), maxWrites: maxWrites, version: pod.ResourceVersion}
	s.worker = workerplan.Worker{
		Pod:   workerpod.Facts(pod),
		Slurm: s.node,
		Wanted: workerplan.Wanted{Protection: workerpod.ProtectionOf(set), Comment: node.Comment{
			Namespace: pod.Namespace, PodName: pod.Name, Node: pod.Spec.NodeName, NodeSetName: set.Name, NodeSetUID: string(set.UID),
			Registration: slurmd.Registration(pod), NVLinkInstanceGroup: host.NVLinkInstanceGroup, Check: pod.Annotations[slinkyv1beta1.AnnotationCheckComment],
		}},
		Host:       host,
		Storage:    r.storage.Of(pod),
		NodeMarked: pod.Annotations[slinkyv1beta1.AnnotationNodeCordoned] != "",
		Checks:     workerpod.ChecksOf(pod.Annotations, set.Spec.RequiredChecks, host.Machine),
		Writes:     workerplan.Writes{Opening: workerpod.ParseOpening(pod.Annotations[slinkyv1beta1.AnnotationOpening])},
		Topology:   pod.Annotations[slinkyv1beta1.AnnotationTopologySpec],
	}
	if pod.DeletionTimestamp != nil {
		s.worker.TerminationDeadline = pod.DeletionTimestamp.Time
	}
	if departs(set) {
		s.worker.Pod.Retired = workerplan.DeletedWithNodeSet
		if s.worker.Pod.RetiredAt.IsZero() {
			s.worker.Pod.RetiredAt = set.DeletionTimestamp.Time
		}
	}
	if set.Spec.DrainTimeout != nil {
		s.worker.DrainTimeout = set.Spec.DrainTimeout.Duration
	}
	key := slurmcache.Key{Namespace: set.Namespace, Name: set.Spec.ControllerRef.Name}
	if l, ok := r.caches.Get(key); ok {
		s.cache = l
		if l.Draining() || workerpod.Growing(set) {
			s.maxWrites = maxWritesWhileDraining
		}
		r.readSnapshot(ctx, s, l.Snapshot())
	} else {
		s.worker.Now, s.worker.Why = r.Clock.Now(), "no RestApi refers to Controller "+set.Spec.ControllerRef.Name
		r.memory.recall(client.ObjectKeyFromObject(pod), key, &s.worker)
	}
	return s, nil
}

// departs reports whether a NodeSet that is being deleted waits for its workers to go. When it is deleted with its pods orphaned, they are
// to be kept.
func departs(set *slinkyv1beta1.NodeSet) bool {
	return set.DeletionTimestamp != nil && slices.Contains(set.Finalizers, slinkyv1beta1.FinalizerWorkers) &&
		!slices.Contains(set.Finalizers, metav1.FinalizerOrphanDependents)
}

// orphaned reports whether a worker that is to go with its NodeSet has been let go by it meanwhile. The garbage collector takes the owner
// off the pods first and then its finalizer off the NodeSet, but the caches may show that the other way round.
func (r *reconciler) orphaned(ctx context.Context, s *scope) (bool, error) {
	if s.worker.Pod.Retired != workerplan.DeletedWithNodeSet {
		return false, nil
	}
	var live corev1.Pod
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.pod), &live); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("reading Pod %s/%s once more: %w", s.pod.Namespace, s.pod.Name, err)
	}
	return !metav1.IsControlledBy(&live, s.set), nil
}

// readSnapshot takes what a snapshot of Slurm has on the worker, and decides. A snapshot that cannot be trusted, or is older than our last write,
// does not count.
func (r *reconciler) readSnapshot(ctx context.Context, s *scope, snapshot *slurmcache.Snapshot) {
	w := &s.worker
	w.SlurmStateLost = node.Unknown
	w.Now, w.Registered, w.Why = r.Clock.Now(), node.Unknown, ""
	w.State, w.Reason, w.Record, w.Jobs, w.JobsKnown = node.State{}, node.Reason{}, workerplan.Record{}, nil, node.Unknown
	key := client.ObjectKeyFromObject(s.pod)
	w.NeverAnswered = snapshot.Taken.IsZero() && !shown(s.pod)
	switch {
	case snapshot.Trust == slurmcache.Stale:
		// The reason in the snapshot is longer, and differs each time; this one goes on the pod.
		w.Why = "Slurm does not answer"
	case snapshot.Trust != slurmcache.Fresh:
		w.Why = snapshot.Why
	case !r.memory.pending.shownAt(key, snapshot.Taken), snapshot.Deleted(s.node):
		s.pending = true
	default:
		readNode(w, snapshot, s.node)
		w.Completing = completingSince(s.pod, w.Now)
		if w.RegisteredAs = ""; w.Registered == node.No {
			w.RegisteredAs = workerpod.RegisteredAs(s.pod, snapshot)
		}
	}
	r.memory.recall(key, s.cache.Key(), w)
	if w.Registered == node.No {
		w.SlurmStateLost = r.lost(ctx, s, snapshot)
	}
}

// lost answers whether Slurm has lost its state, for a worker that the snapshot lacks. A No comes from this very snapshot and all workers
// of the cluster; it is not looked for before the absence is old enough to be believed.
func (r *reconciler) lost(ctx context.Context, s *scope, snapshot *slurmcache.Snapshot) node.Answer {
	w := &s.worker
	switch {
	case workerpod.Lost(s.set), w.Pod.Was && snapshot.Forgotten(s.node):
		return node.Yes
	case snapshot.Trust != slurmcache.Fresh, !w.Settled(), w.Pod.Phase == string(corev1.PodPending):
		return node.Unknown // which is enough for a pod in which nothing can run yet; the answer goes through all workers
	}
	all, err := workerpod.OfCluster(ctx, r.Client, s.set)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not tell whether Slurm has lost its state")
		return node.Unknown
	}
	return workerpod.StateKept(all, snapshot).Not()
}

// shown reports whether the pod shows a state from Slurm.
func shown(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return strings.HasPrefix(string(c.Type), node.ConditionPrefix)
	})
}

// completingSince returns since when the Slurm node is COMPLETING, if it is: the time that the pod shows, or now if it shows none yet.
func completingSince(pod *corev1.Pod, now time.Time) time.Time {
	if c := workerpod.Condition(pod, completing); c != nil && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return now.Truncate(time.Second)
}

// readNode reads a node out of a snapshot.
func readNode(w *workerplan.Worker, snapshot *slurmcache.Snapshot, name string) {
	n, known := snapshot.Node(name)
	w.SnapshotTime, w.NodeListTime, w.Registered, w.State = snapshot.Taken, snapshot.Listed, known, snapshot.State(name)
	if n == nil {
		return
	}
	ours := func(t time.Time) time.Time { // by our clock
		if t.IsZero() {
			return t
		}
		return t.Add(-snapshot.Ahead)
	}
	w.Reason = slurmcache.ReasonOf(n)
	w.Reason.At = snapshot.Ours(name, n.ReasonTime)
	w.Record = workerplan.Record{
		Comment: n.Comment, Topology: n.Topology, Features: n.Features, Active: n.ActiveFeatures, Started: ours(n.SlurmdTime),
		Drained: slurmcache.ReasonOf(n), StartedSince: n.SlurmdTime.After(n.ReasonTime),
	}
	jobs, jobsKnown := snapshot.Jobs(name)
	w.JobsKnown = jobsKnown
	for _, j := range jobs {
		w.Jobs = append(w.Jobs, workerplan.Job{ID: j.ID, User: j.User, End: ours(j.End), Completing: j.Completing})
	}
}
