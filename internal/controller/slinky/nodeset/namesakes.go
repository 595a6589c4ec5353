// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
