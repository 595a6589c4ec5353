// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Gatherer gathers the facts of pages from what the manager has in memory.
type Gatherer struct {
	// Reader is the manager's cache. What it has is only read.
	Reader client.Reader
	Caches *slurmcache.Registry
	// Elected is closed once this process holds the lease.
	Elected <-chan struct{}
	// SlurmClusters is true if the manager watches that kind.
	SlurmClusters bool
	// Now is the clock.
	Now func() time.Time
}

// Clusters returns the facts of all clusters, by namespace and name.
func (g *Gatherer) Clusters(ctx context.Context) ([]Facts, error) {
	keys, err := g.keys(ctx)
	if err != nil {
		return nil, err
	}
	var out []Facts
	for _, key := range keys {
		facts, found, err := g.Cluster(ctx, key)
		if err != nil {
			return nil, err
		}
		if found { // it may have gone meanwhile
			out = append(out, facts)
		}
	}
	return out, nil
}

// keys returns the names of all clusters. A SlurmCluster with a mistake in it may have no Controller.
func (g *Gatherer) keys(ctx context.Context) ([]slurmcache.Key, error) {
	var controllers slinkyv1beta1.ControllerList
	if err := g.Reader.List(ctx, &controllers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Controllers: %w", err)
	}
	var clusters nebiusv1.SlurmClusterList
	if g.SlurmClusters {
		if err := g.Reader.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing SlurmClusters: %w", err)
		}
	}
	var keys []slurmcache.Key
	for i := range controllers.Items {
		keys = append(keys, slurmcache.Key{Namespace: controllers.Items[i].Namespace, Name: controllers.Items[i].Name})
	}
	for i := range clusters.Items {
		keys = append(keys, slurmcache.Key{Namespace: clusters.Items[i].Namespace, Name: clusters.Items[i].Name})
	}
	slices.SortFunc(keys, func(a, b slurmcache.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(keys), nil
}

// Cluster are the facts of a cluster, and whether it exists.
func (g *Gatherer) Cluster(ctx context.Context, key slurmcache.Key) (f Facts, found bool, err error) {
	f = Facts{Now: g.Now(), Cluster: key, Waiting: true}
	select {
	case <-g.Elected:
		f.Waiting = false
	default:
	}
	if f.Objects, err = g.objects(ctx, key); err != nil || len(f.Objects) == 0 {
		return Facts{}, false, err
	}
	var sets slinkyv1beta1.NodeSetList
	if err := g.Reader.List(ctx, &sets, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return Facts{}, false, fmt.Errorf("listing the NodeSets of %s: %w", key, err)
	}
	for i := range sets.Items {
		if n := &sets.Items[i]; n.Spec.ControllerRef.Name == key.Name {
			f.NodeSets = append(f.NodeSets, NodeSet{Name: n.Name, DryRun: workerpod.DryRun(n), Status: n.Status})
		}
	}
	slices.SortFunc(f.NodeSets, func(a, b NodeSet) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range f.NodeSets {
		f.Objects = append(f.Objects, Object{Kind: "NodeSet", Name: n.Name, Conditions: n.Status.Conditions})
	}
	snapshot := &slurmcache.Snapshot{}
	if l, ok := g.Caches.Get(key); ok {
		snapshot = l.Snapshot()
		f.Slurm = Slurm{
			Connected: true, Trust: snapshot.Trust, Since: snapshot.Since, Taken: snapshot.Taken, Why: snapshot.Why,
			Name: snapshot.Meta.Cluster, Release: snapshot.Meta.Release, Ahead: snapshot.Ahead,
		}
		f.Partitions = partitions(snapshot)
	}
	f.Nodes, err = g.nodes(ctx, key, snapshot)
	return f, err == nil, err
}

// Jobs asks Slurm for the jobs of a cluster. Without a Slurm cache it does not ask: there are none.
func (g *Gatherer) Jobs(ctx context.Context, key slurmcache.Key) (slurmcache.JobRecords, error) {
	l, ok := g.Caches.Get(key)
	if !ok {
		return slurmcache.JobRecords{}, nil
	}
	return l.CollectJobs(ctx)
}

// partitions counts the nodes of each partition.
func partitions(snapshot *slurmcache.Snapshot) map[string]int {
	out := map[string]int{}
	for n := range snapshot.Nodes() {
		for _, name := range n.Partitions {
			out[name]++
		}
	}
	return out
}

// objects returns the SlurmCluster and the Controller of that name, as far as they exist.
func (g *Gatherer) objects(ctx context.Context, key slurmcache.Key) (out []Object, err error) {
	name := client.ObjectKey{Namespace: key.Namespace, Name: key.Name}
	if g.SlurmClusters {
		var cluster nebiusv1.SlurmCluster
		switch err := g.Reader.Get(ctx, name, &cluster); {
		case err == nil:
			out = append(out, Object{Kind: "SlurmCluster", Name: key.Name, Conditions: cluster.Status.Conditions})
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading SlurmCluster %s: %w", key, err)
		}
	}
	var controller slinkyv1beta1.Controller
	switch err := g.Reader.Get(ctx, name, &controller); {
	case err == nil:
		out = append(out, Object{Kind: "Controller", Name: key.Name, Conditions: controller.Status.Conditions})
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading Controller %s: %w", key, err)
	}
	return out, nil
}

// nodes returns the workers of a cluster, and the nodes of its Slurm that are not workers.
func (g *Gatherer) nodes(ctx context.Context, key slurmcache.Key, snapshot *slurmcache.Snapshot) ([]Node, error) {
	var pods corev1.PodList
	err := g.Reader.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{slinkyv1beta1.LabelCluster: key.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the workers of %s: %w", key, err)
	}
	out := make([]Node, 0, max(len(pods.Items), snapshot.Len()))
	seen := make(map[string]bool, len(pods.Items))
	for i := range pods.Items {
		p := &pods.Items[i]
		n := Node{
			Name: cmp.Or(workerpod.SlurmNode(p), p.Name), Plan: p.Annotations[slinkyv1beta1.AnnotationPlan],
			OutOfService: conditionMessage(p, slinkyv1beta1.PodConditionOutOfService), Attention: conditionMessage(p, slinkyv1beta1.PodConditionNeedsAttention),
		}
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
			n.NodeSet = owner.Name
		}
		seen[n.Name] = true
		out = append(out, seenBySlurm(n, snapshot))
	}
	for found := range snapshot.Nodes() {
		if !seen[found.Name] {
			out = append(out, seenBySlurm(Node{Name: found.Name}, snapshot))
		}
	}
	return out, nil
}

// seenBySlurm adds Slurm's last answer to a node, however old that is.
func seenBySlurm(n Node, snapshot *slurmcache.Snapshot) Node {
	found, exists := snapshot.Node(n.Name)
	n.Registered = exists
	if found != nil {
		n.State, n.Reason = node.Parse(found.State), slurmcache.ReasonOf(found)
	}
	return n
}

// conditionMessage returns the message of a condition of a worker pod, if it is there and True.
func conditionMessage(p *corev1.Pod, kind corev1.PodConditionType) string {
	c := workerpod.Condition(p, kind)
	switch {
	case c == nil || c.Status != corev1.ConditionTrue:
		return ""
	case c.Message == "":
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

// Watch calls wake whenever one of the objects changes that pages are made of, until the context ends.
func (g *Gatherer) Watch(ctx context.Context, informers cache.Informers, wake func()) error {
	kinds := []client.Object{&slinkyv1beta1.Controller{}, &slinkyv1beta1.NodeSet{}, &corev1.Pod{}}
	if g.SlurmClusters {
		kinds = append(kinds, &nebiusv1.SlurmCluster{})
	}
	for _, kind := range kinds {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T for the status page: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { wake() }, UpdateFunc: func(_, _ any) { wake() }, DeleteFunc: func(any) { wake() },
		})
		if err != nil {
			return fmt.Errorf("watching %T for the status page: %w", kind, err)
		}
	}
	return nil
}
