// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// host gathers what is known about the Kubernetes node of a pod. An empty name is a pod without a node, which is not cordoned; nothing is
// known about a node that does not exist.
func (r *reconciler) host(ctx context.Context, name string) (workerplan.Host, error) {
	if name == "" {
		return workerplan.Host{Cordoned: node.No}, nil
	}
	var n corev1.Node
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &n, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return workerplan.Host{Name: name}, nil
		}
		return workerplan.Host{}, fmt.Errorf("reading the Kubernetes node %s: %w", name, err)
	}
	return r.factsOf(&n), nil
}

// labelNVLinkInstanceGroup is the label of Kubernetes nodes that metrics show:
// docs/contributors/predecessors/soperator-metrics.md#groups-of-nvlink.
const labelNVLinkInstanceGroup = "topology.nebius.com/nvl-instance-group-id"

func (r *reconciler) factsOf(n *corev1.Node) workerplan.Host {
	h := workerplan.Host{
		Name: n.Name, Machine: workerpod.MachineOf(n), Cordoned: node.AnswerOf(n.Spec.Unschedulable || takenByAutoscaler(n)), Ready: node.Unknown,
		CordonReason: cmp.Or(n.Annotations[slinkyv1beta1.AnnotationNodeCordonReason], conditionReasons(n, r.propagated)),
		Maintenance:  r.health.Of(n),
		Reboot:       r.health.RebootOf(n),
		Features:     n.Annotations[slinkyv1beta1.AnnotationFeatures],

		NVLinkInstanceGroup: n.Labels[labelNVLinkInstanceGroup],
	}
	h.Topology, h.HasTopology = n.Annotations[slinkyv1beta1.AnnotationTopologySpec]
	if !h.HasTopology {
		h.Topology, h.HasTopology = n.Annotations[slinkyv1beta1.AnnotationTopologyLine]
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			h.Ready = node.AnswerOf(c.Status == corev1.ConditionTrue)
		}
	}
	return h
}

// takenByAutoscaler reports whether an autoscaler is taking the Kubernetes node away: cluster-autoscaler and Karpenter taint it instead of
// cordoning it, and then evict its pods until that succeeds.
func takenByAutoscaler(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == "ToBeDeletedByClusterAutoscaler" || t.Key == "karpenter.sh/disrupted"
	})
}

// conditionReasons returns what is wrong with a Kubernetes node according to these condition types: "(Reason: Message); (…)".
func conditionReasons(n *corev1.Node, types []string) string {
	var all []string
	for _, c := range n.Status.Conditions {
		is := corev1.ConditionTrue // for most conditions, such as MemoryPressure
		if c.Type == corev1.NodeReady {
			is = corev1.ConditionFalse
		}
		if slices.Contains(types, string(c.Type)) && (c.Status == is || c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown) {
			all = append(all, fmt.Sprintf("(%s: %s)", c.Reason, c.Message))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// kubeNodeChanges lets through the changes of Kubernetes nodes that concern workers. Kubelets write the status of their
// nodes all the time.
func (r *reconciler) kubeNodeChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, okay := e.ObjectNew.(*corev1.Node)
		return !ok || !okay || r.factsOf(before) != r.factsOf(after)
	}}
}

// podsOn returns the workers on a Kubernetes node.
func (r *reconciler) podsOn(ctx context.Context, o client.Object) []ctrl.Request {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.MatchingFields{workerpod.KubernetesNodeIndex: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the workers on a Kubernetes node", "node", o.GetName())
		return nil
	}
	return requestsFor(pods.Items)
}
