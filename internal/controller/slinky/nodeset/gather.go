// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// facts are what is known about a NodeSet.
type facts struct {
	set *slinkyv1beta1.NodeSet
	// input is what workers are rendered from, and problems are what is wrong with it. While there are problems, nothing is done to workers.
	input    slurmd.Input
	problems problem.List
	// hostKeys reports whether there is a Secret with the host keys of the workers' sshd.
	hostKeys bool
	// pods are the workers, by their ordinals. They belong to the cache and are only read.
	pods []corev1.Pod
	// workers is what the plan for them is made from, except for the revision. registered are the names of those that Slurm has.
	workers    nodesetplan.Input
	registered hostlist.Set
	// drainBudget shows which workers wait until checks may take more out of service.
	drainBudget budget.Status
	// unfit are Kubernetes nodes that cannot get a worker. They do not keep other nodes from getting one.
	unfit problem.List
	// registration is the digest of what workers register with, where Slurm powers them up and down.
	registration string
	// stored are the ControllerRevisions by name, and revision is the content of the newest.
	stored   map[string]*appsv1.ControllerRevision
	revision []byte
}

func (r *reconciler) gather(ctx context.Context, n *slinkyv1beta1.NodeSet) (facts, error) {
	f := facts{set: n, drainBudget: r.budgets.Of(client.ObjectKeyFromObject(n))}
	var err error
	f.input, err = r.input(ctx, n)
	if err == nil {
		err = slurmd.Check(f.input) // before any pod is made
	}
	if f.problems, err = problem.FromError(err); err != nil {
		return f, err
	}
	if err := r.gatherWorkers(ctx, &f); err != nil {
		return f, err
	}
	if len(f.problems) > 0 {
		return f, nil
	}
	if err := r.gatherSpec(ctx, &f); err != nil {
		return f, err
	}
	if f.hostKeys, err = r.hasHostKeys(ctx, n); err != nil {
		return f, err
	}
	if f.revision, err = slurmd.RevisionData(f.input); err != nil {
		return f, err
	}
	f.stored, err = r.revisions(ctx, n)
	return f, err
}

// gatherWorkers adds the workers that exist, and what Slurm reports of them.
func (r *reconciler) gatherWorkers(ctx context.Context, f *facts) (err error) {
	if f.pods, err = r.pods(ctx, f.set); err != nil {
		return err
	}
	r.names.seen(f.set, f.pods)
	f.workers = nodesetplan.Input{Now: r.Clock.Now(), Replicas: len(f.pods)}
	for i := range f.pods {
		f.workers.Pods = append(f.workers.Pods, workerpod.Facts(&f.pods[i]))
	}
	if f.registered, err = r.ask(ctx, f.set, f.pods, &f.workers); err != nil {
		return err
	}
	r.absences.recall(f.set.UID, &f.workers)
	if f.workers.Unregistered() {
		f.workers.SlurmctldSince, err = r.slurmctldSince(ctx, f.set)
	}
	return err
}

// input reads what workers are rendered from.
func (r *reconciler) input(ctx context.Context, n *slinkyv1beta1.NodeSet) (slurmd.Input, error) {
	c, err := r.Controller(ctx, n.Namespace, n.Spec.ControllerRef)
	if err != nil {
		return slurmd.Input{}, err
	}
	in := slurmd.Input{NodeSet: n, Controller: c, ClusterDomain: r.ClusterDomain, Images: r.Images, Protected: r.bornProtected(n)}
	if in.SshdConfig, err = r.sshdConfig(ctx, n); err != nil {
		return in, err
	}
	in.SssdDigest, err = r.sssd(ctx, n, c)
	return in, err
}

// pods returns the workers of a NodeSet, in one order, so that messages and the order of actions do not depend on the cache. They are not
// copied: copies of thousands of pods with every change of one would be most of what the operator does.
func (r *reconciler) pods(ctx context.Context, n *slinkyv1beta1.NodeSet) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, client.InNamespace(n.Namespace), client.MatchingFields{kube.OwnerIndex: string(n.UID)},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(workerpod.Ordinal(&a)-workerpod.Ordinal(&b), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// gatherSpec adds what the spec asks for, and the Kubernetes nodes where the NodeSet chooses among them.
func (r *reconciler) gatherSpec(ctx context.Context, f *facts) error {
	n, w := f.set, &f.workers
	w.Replicas, w.MinReady = int(n.Replicas()), minReady(n)
	if !n.SavesPower() {
		w.RequiredChecks = n.Spec.RequiredChecks
	}
	w.Daemon = n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet
	if n.SavesPower() {
		pod, err := slurmd.Pod(f.input, workerpod.Place{}, "") // all are alike in what they register with
		if err != nil {
			return err
		}
		f.registration = slurmd.Registration(pod)
	}
	w.PowerSaving = r.power(n, f.pods, f.registration)
	w.Rolling, w.Scheduled = n.UpdateType() == slinkyv1beta1.UpdateRolling, n.UpdateType() == slinkyv1beta1.UpdateScheduled
	if w.Daemon || n.Spec.PinToNode {
		spec, err := slurmd.Template(f.input)
		if err != nil {
			return err
		}
		var nodes corev1.NodeList
		if err := r.Client.List(ctx, &nodes); err != nil {
			return fmt.Errorf("listing the nodes for NodeSet %s/%s: %w", n.Namespace, n.Name, err)
		}
		w.Nodes, w.HostNetwork = nodesetplan.KubeNodes(spec, nodes.Items), spec.HostNetwork
	}
	switch {
	case w.Daemon:
		f.unfit = nodesetplan.NameHosts(w.Nodes, w.Pods)
	case n.Spec.PinToNode:
		w.Pins = nodesetplan.Pin(n.Status.OrdinalToNode, w.Pods, w.Replicas, w.Nodes, n.Spec.OversubscribeNode)
	}
	w.MaxUnavailable = maxUnavailable(n, w.Desired())
	return nil
}

// cacheOf returns the cache of the Slurm cluster that the workers belong to, if there is one.
func (r *reconciler) cacheOf(n *slinkyv1beta1.NodeSet) (*slurmcache.Cache, bool) {
	return r.caches.Get(slurmcache.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name})
}

// ask adds to the facts what Slurm reports now of the workers' nodes, and returns the names of those that it has. Without a fresh answer
// everything stays Unknown.
func (r *reconciler) ask(ctx context.Context, n *slinkyv1beta1.NodeSet, pods []corev1.Pod, facts *nodesetplan.Input) (hostlist.Set, error) {
	registered := hostlist.SetOf()
	facts.SlurmStateLost, facts.JobsWantedSince = workerpod.Lost(n), r.interest.since(client.ObjectKeyFromObject(n))
	l, ok := r.cacheOf(n)
	if !ok {
		return registered, nil
	}
	snapshot := l.Snapshot()
	if snapshot.Trust != slurmcache.Fresh {
		return registered, nil
	}
	facts.SnapshotTime, facts.NodeListTime = snapshot.Taken, snapshot.Listed
	reservation, missing := nodesetplan.ReservationName(n.Name), false
	for i := range pods {
		name := workerpod.SlurmNode(&pods[i])
		found, known := snapshot.Node(name)
		facts.Pods[i].Registered, facts.Pods[i].Forgotten = known, snapshot.Forgotten(name)
		if found == nil {
			missing = missing || facts.Pods[i].Ready
			facts.Pods[i].RegisteredAs = workerpod.RegisteredAs(&pods[i], snapshot)
			continue
		}
		registered.Add(name)
		// The pod's conditions follow a moment later, and never on a pod that is deleted.
		if busy := snapshot.State(name).Busy(); busy != node.Unknown {
			facts.Pods[i].Busy = busy == node.Yes
		}
		if end, known := snapshot.LastEnd(name); known == node.Yes {
			facts.Pods[i].Deadline, facts.Pods[i].DeadlineKnown = end, true
		}
		facts.Pods[i].Maintained = node.AnswerOf(found.Reservation == reservation).And(snapshot.State(name).InMaintenance())
	}
	if !missing {
		return registered, nil
	}
	return registered, r.askOthers(ctx, n, snapshot, facts)
}

// askOthers adds the workers of other NodeSets of the cluster to the facts.
func (r *reconciler) askOthers(ctx context.Context, n *slinkyv1beta1.NodeSet, snapshot *slurmcache.Snapshot, facts *nodesetplan.Input) error {
	all, err := workerpod.OfCluster(ctx, r.Client, n)
	if err != nil {
		return err
	}
	for i := range all {
		if p := &all[i]; !metav1.IsControlledBy(p, n) {
			facts.Others = append(facts.Others, workerpod.Seen(p, snapshot))
		}
	}
	return nil
}

// jobInterest is which NodeSets wait to hear when jobs end. It may be lost: then they ask, and wait, anew.
type jobInterest struct {
	of perkey.Memory[types.NamespacedName, interestedIn]
}

// interestedIn is the Slurm nodes about whose jobs one NodeSet waits to hear.
type interestedIn struct {
	cache slurmcache.Key
	since time.Time
	nodes hostlist.Set
}

// since returns since when a NodeSet asks; zero when it does not.
func (a *jobInterest) since(set types.NamespacedName) time.Time {
	return a.of.Get(set).since
}

// about returns the NodeSets that asked about what changed.
func (a *jobInterest) about(change slurmcache.Change) []types.NamespacedName {
	var out []types.NamespacedName
	for set, q := range a.of.All() {
		if q.cache == change.Cluster && q.nodes.Contains(change.Node) {
			out = append(out, set)
		}
	}
	return out
}

// wantJobs has the Slurm cache ask for the jobs of the workers that the plan names, and for no others.
func (r *reconciler) wantJobs(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, plan nodesetplan.Plan, now time.Time) {
	key := client.ObjectKeyFromObject(n)
	who := "NodeSet " + key.String()
	cluster := slurmcache.Key{Namespace: n.Namespace, Name: n.Spec.ControllerRef.Name}
	named := hostlist.SetOf(plan.WantJobs...)
	var nodes []string
	for i := range pods {
		if named.Contains(pods[i].Name) {
			nodes = append(nodes, workerpod.SlurmNode(&pods[i]))
		}
	}
	asked := false
	r.interest.of.Change(key, func(q *interestedIn) bool {
		if asked = !q.since.IsZero(); !asked {
			q.since = now
		}
		q.cache, q.nodes = cluster, hostlist.SetOf(nodes...)
		return len(nodes) > 0
	})
	if l, ok := r.caches.Get(cluster); ok && (asked || len(nodes) > 0) {
		l.WantJobs(who, nodes...)
	}
}
