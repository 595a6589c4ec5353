// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// nodeName is the name of a Slurm node.
type nodeName struct{ namespace, cluster, node string }

// takenName is a name for which this process makes a worker, or has made one that the cache may not show yet.
type takenName struct {
	set types.UID
	pod string
	// answered is closed when the API server has answered about the pod, or has not answered in time.
	answered chan struct{}
}

// takenNames keep two NodeSets from making workers of one name at the same time: neither would see the other's worker in the cache. At rest
// there are none; a name whose worker the cache never shows is dropped when another NodeSet asks for it.
type takenNames struct {
	mu sync.Mutex
	by map[nodeName]*takenName
}

// take gives a name to a NodeSet that is about to make a pod. When another NodeSet has the name, take returns that entry instead. The API
// server decides between two pods of one name.
func (t *takenNames) take(name nodeName, set types.UID, pod string) (mine, other *takenName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other = t.by[name]; other != nil && other.set != set && other.pod != pod {
		return nil, other
	}
	if t.by == nil {
		t.by = map[nodeName]*takenName{}
	}
	mine = &takenName{set: set, pod: pod, answered: make(chan struct{})}
	t.by[name] = mine
	return mine, nil
}

// free drops a name that somebody has taken, unless somebody else has it by now.
func (t *takenNames) free(name nodeName, from *takenName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by[name] == from {
		delete(t.by, name)
	}
}

// seen drops the names of those workers of a NodeSet that the cache shows: another NodeSet that takes such a name then finds them there.
func (t *takenNames) seen(n *slinkyv1beta1.NodeSet, pods []corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.by) == 0 {
		return
	}
	for i := range pods {
		name := nodeName{n.Namespace, n.Spec.ControllerRef.Name, workerpod.SlurmNode(&pods[i])}
		if taken := t.by[name]; taken != nil && taken.set == n.UID && taken.pod == pods[i].Name {
			delete(t.by, name)
		}
	}
}

// takeName gives a worker that is about to be made its name in Slurm. answered is to be called when the API server has answered about its
// pod. The error is a problem where another worker has the name. It takes the name first and asks the cache then: whoever had the name
// before dropped it when the cache showed the worker.
func (r *reconciler) takeName(ctx context.Context, n *slinkyv1beta1.NodeSet, pod *corev1.Pod) (answered func(), err error) {
	name := nodeName{n.Namespace, n.Spec.ControllerRef.Name, nameInSlurm(pod)}
	if name.node == "" { // the scheduler decides
		return func() {}, nil
	}
	mine, holder, err := r.awaitName(ctx, name, n.UID, pod.Name)
	if err != nil {
		return nil, err
	}
	if holder == nil {
		if holder, err = r.namesake(ctx, n, pod, name); err == nil && holder == nil {
			return func() { close(mine.answered) }, nil
		}
		r.names.free(name, mine)
		close(mine.answered)
	}
	if err != nil {
		return nil, err
	}
	return nil, forbid(n, pod, name.node, holder)
}

// awaitName takes a name once the API server has answered the NodeSet that makes a worker of this name now. holder is the worker that was
// made.
func (r *reconciler) awaitName(ctx context.Context, name nodeName, set types.UID, pod string) (mine *takenName, holder *corev1.Pod, err error) {
	for {
		mine, other := r.names.take(name, set, pod)
		if mine != nil {
			return mine, nil, nil
		}
		select {
		case <-other.answered:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("waiting for Pod %s/%s, which is to be %s in Slurm: %w", name.namespace, other.pod, name.node, ctx.Err())
		}
		live := &corev1.Pod{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: name.namespace, Name: other.pod}, live)
		switch {
		case err == nil && nameInSlurm(live) == name.node:
			return nil, live, nil
		case client.IgnoreNotFound(err) != nil:
			return nil, nil, fmt.Errorf("reading Pod %s/%s, which may be %s in Slurm: %w", name.namespace, other.pod, name.node, err)
		}
		r.names.free(name, other) // it was not made, or is gone
	}
}

// nameInSlurm returns the name of a worker in Slurm, also while it waits for the Kubernetes node that gives it its name; empty when that
// may be any node.
func nameInSlurm(pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return cmp.Or(pod.Spec.NodeName, pod.Annotations[slinkyv1beta1.AnnotationNode])
	}
	return workerpod.SlurmNode(pod)
}

// namesake returns a worker with this name in Slurm that the cache has besides the workers of n; nil when there is none. A worker whose pod
// has the name of the new pod is adopted instead. One without an owner runs on, as after "kubectl delete nodeset --cascade=orphan".
func (r *reconciler) namesake(ctx context.Context, n *slinkyv1beta1.NodeSet, pod *corev1.Pod, name nodeName) (*corev1.Pod, error) {
	pods, err := workerpod.OfSlurmNode(ctx, r.Client, name.namespace, name.cluster, name.node)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if owner := workerpod.Owner(&pods[i]); pods[i].Name != pod.Name && (owner == nil || owner.UID != n.UID) {
			return &pods[i], nil
		}
	}
	return nil, nil //nolint:nilnil // absent is an answer, not an error
}

// forbid returns why a worker cannot be made now.
func forbid(n *slinkyv1beta1.NodeSet, pod *corev1.Pod, name string, holder *corev1.Pod) error {
	if owner := workerpod.Owner(holder); owner != nil {
		return nodesetplan.Namesakes("Pod "+pod.Name, name, owner.Name, nodesetplan.RenameWorkers(n))
	}
	return problem.Errorf("Pod "+pod.Name, slinkyv1beta1.ReasonHostnameConflict,
		"Pod %s, which belongs to no NodeSet any more, has host name %s, and in Slurm both would be the same node; delete that Pod when no job runs there", holder.Name, name)
}

// watchNamesakes wakes the NodeSets that wait for a host name when a worker of another one is gone.
func (r *reconciler) watchNamesakes(b *builder.Builder) {
	b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.waitingForNames), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
}

func (r *reconciler) waitingForNames(ctx context.Context, pod client.Object) []ctrl.Request {
	cluster := pod.GetLabels()[slinkyv1beta1.LabelCluster]
	if cluster == "" {
		return nil
	}
	var sets slinkyv1beta1.NodeSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(pod.GetNamespace()), client.MatchingFields{reference.Index: reference.To("Controller", cluster)}); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the NodeSets that wait for a host name")
		return nil
	}
	var out []ctrl.Request
	for i := range sets.Items {
		stalled := meta.FindStatusCondition(sets.Items[i].Status.Conditions, slinkyv1beta1.ConditionStalled)
		if stalled != nil && stalled.Reason == slinkyv1beta1.ReasonHostnameConflict {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return out
}
