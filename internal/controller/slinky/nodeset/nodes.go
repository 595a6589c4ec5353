// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// watchNodes adds what wakes NodeSets beside their objects in Kubernetes: nodes, there and in Slurm.
func (r *reconciler) watchNodes(b *builder.Builder) {
	r.watchKubeNodes(b)
	r.watchNamesakes(b)
	b.WatchesRawSource(reconcile.SlurmChanges(r.caches, r.wake))
	b.WatchesRawSource(r.budgetChanges())
	b.Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(setOfClaim), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			_, refused := r.refusals.Get(e.ObjectNew.GetUID()) // which may end by what has changed
			return refused || len(e.ObjectOld.GetOwnerReferences()) != len(e.ObjectNew.GetOwnerReferences())
		},
	}))
}

// watchKubeNodes wakes the NodeSets that choose among Kubernetes nodes when one comes, goes, or changes in what they look at. Heartbeats of
// kubelets do not count.
func (r *reconciler) watchKubeNodes(b *builder.Builder) {
	b.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.choosers), builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Node)
			after, same := e.ObjectNew.(*corev1.Node)
			return ok && same && !sameToWorkers(before, after)
		},
	}))
}

func sameToWorkers(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, func(x, y corev1.Taint) bool { return equality.Semantic.DeepEqual(x, y) }) &&
		a.Annotations[slinkyv1beta1.AnnotationHostnameOverride] == b.Annotations[slinkyv1beta1.AnnotationHostnameOverride]
}

// choosers returns the NodeSets for which it matters which Kubernetes nodes there are.
func (r *reconciler) choosers(ctx context.Context, _ client.Object) []ctrl.Request {
	var sets slinkyv1beta1.NodeSetList
	if err := r.Client.List(ctx, &sets); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the NodeSets that choose among Kubernetes nodes")
		return nil
	}
	var out []ctrl.Request
	for i := range sets.Items {
		if n := &sets.Items[i]; n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet || n.Spec.PinToNode {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(n)})
		}
	}
	return out
}

const (
	// maxUnscheduledShown is how many workers without a Kubernetes node the message names.
	maxUnscheduledShown = 3
	// maxSchedulerWords is how many bytes of the scheduler's message it repeats.
	maxSchedulerWords = 512
)

// unscheduled returns what pinned workers wait for that Kubernetes has found no node for: "; w-0 waits for Kubernetes node a, to which it
// is pinned: it is cordoned".
func unscheduled(pods []corev1.Pod, nodes []nodesetplan.KubeNode) string {
	fits := map[string]nodesetplan.Fit{}
	for _, node := range nodes {
		fits[node.Name] = node.Fit
	}
	var told []string
	more := 0
	for i := range pods {
		p := workerpod.Facts(&pods[i])
		switch {
		case !p.Unschedulable || p.Terminating:
		case len(told) == maxUnscheduledShown:
			more++
		case p.Node != "":
			told = append(told, fmt.Sprintf("; %s waits for Kubernetes node %s, to which it is pinned: %s", p.Name, p.Node, obstacle(fits[p.Node])))
		default: // as when its claim has a volume on a Kubernetes node that is gone
			told = append(told, fmt.Sprintf("; %s is not scheduled: %s", p.Name, schedulerWords(&pods[i])))
		}
	}
	if more > 0 {
		told = append(told, fmt.Sprintf("; and %d more", more))
	}
	return strings.Join(told, "")
}

// obstacle returns what keeps a worker from a Kubernetes node.
func obstacle(fit nodesetplan.Fit) string {
	switch fit {
	case nodesetplan.Fits:
		return "it is cordoned"
	case nodesetplan.Belongs:
		return "it is not ready, or is under memory, disk or PID pressure"
	case nodesetplan.Starts:
		return "it has no room for the worker"
	default:
		return "it no longer matches the NodeSet"
	}
}

func schedulerWords(pod *corev1.Pod) string {
	words := workerpod.Condition(pod, corev1.PodScheduled).Message
	return strings.ToValidUTF8(words[:min(len(words), maxSchedulerWords)], "")
}
