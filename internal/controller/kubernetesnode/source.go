// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesnode

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// nodeFacts are what matters about a Node itself.
type nodeFacts struct {
	conditions       [len(written)]health.Condition
	maintenance      health.Maintenance
	leaving, ignored bool
}

// written are the types of the conditions of a Node that are read, besides those that announce maintenance.
//
//nolint:gochecknoglobals // a constant list
var written = [...]corev1.NodeConditionType{
	health.NodeDegraded, health.NodeReboot, health.NodeMaintenance, health.NodeDrain, health.NodeNotReady, health.HardwareIssuesSuspected, corev1.NodeReady,
}

// nodeChanges lets through the changes of a Node that matter for that Node. Kubelets write the status of their nodes all the time.
func (r *reconciler) nodeChanges() predicate.Predicate {
	facts := func(n *corev1.Node) nodeFacts {
		f := nodeFacts{maintenance: r.health.Of(n), leaving: n.DeletionTimestamp != nil, ignored: r.health.Ignores(n)}
		for i, kind := range written {
			f.conditions[i] = health.ConditionOf(n, kind)
			f.conditions[i].Message = ""
		}
		return f
	}
	return nodePredicate(func(before, after *corev1.Node) bool { return facts(before) != facts(after) })
}

// othersChanges lets through the changes after which another node may begin a reboot or a replacement, or has to wait.
func othersChanges() predicate.Predicate {
	facts := func(n *corev1.Node) (out health.Others) {
		out.Add(n)
		return out
	}
	p := nodePredicate(func(before, after *corev1.Node) bool { return facts(before) != facts(after) })
	p.CreateFunc = func(event.CreateEvent) bool { return false }
	return p
}

func nodePredicate(changed func(before, after *corev1.Node) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, also := e.ObjectNew.(*corev1.Node)
		return ok && also && changed(before, after)
	}}
}

// podFacts are what matters about a pod on a Kubernetes node.
type podFacts struct {
	node, protected       string
	ready, ended, leaving bool
}

func podFactsOf(p *corev1.Pod) podFacts {
	f := podFacts{
		node: p.Spec.NodeName, leaving: p.DeletionTimestamp != nil, protected: p.Labels[slinkyv1beta1.LabelPodProtect],
		ended: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	if c := workerpod.Condition(p, corev1.PodReady); c != nil && isRebooter(p) {
		f.ready = c.Status == corev1.ConditionTrue
	}
	return f
}

// podChanges lets through the changes of workers and rebooters that matter for their Kubernetes node.
func podChanges() predicate.Predicate {
	concerns := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && pod.Spec.NodeName != "" && (pod.Labels[slinkyv1beta1.LabelCluster] != "" || isRebooter(pod))
	}
	return predicate.And(predicate.NewPredicateFuncs(concerns), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, also := e.ObjectNew.(*corev1.Pod)
		return ok && also && podFactsOf(before) != podFactsOf(after)
	}})
}

// nodeOf returns the Kubernetes node of a pod that has one.
func nodeOf(_ context.Context, o client.Object) []ctrl.Request {
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: pod.Spec.NodeName}}}
	}
	return nil
}

// waiting returns the nodes with workers, each of which may wait for another one.
func (r *reconciler) waiting(ctx context.Context, _ client.Object) []ctrl.Request {
	names, err := r.nodesWithWorkers(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the Kubernetes nodes that may wait for another one")
	}
	out := make([]ctrl.Request, 0, len(names))
	for name := range names {
		out = append(out, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return out
}
