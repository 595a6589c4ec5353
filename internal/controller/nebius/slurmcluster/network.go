// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// topologyDelay is how long changes in the network are collected: many workers start together, and each topology.conf is a reconfiguration
// of Slurm.
const topologyDelay = time.Second

// workers reads where the workers of a cluster are in the network, and nothing for a cluster that does not depend on it.
func (r *reconciler) workers(ctx context.Context, cluster *nebiusv1.SlurmCluster) ([]compose.ObservedWorker, error) {
	if !compose.FollowsNetwork(cluster) {
		return nil, nil
	}
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{slinkyv1beta1.LabelCluster: cluster.ControllerName()})
	if err != nil {
		return nil, fmt.Errorf("listing the workers of %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	locations := map[string]topology.Location{}
	if len(pods.Items) > 0 {
		var nodes corev1.NodeList
		if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing Kubernetes nodes: %w", err)
		}
		for i := range nodes.Items {
			locations[nodes.Items[i].Name] = topology.Locate(nodes.Items[i].Labels, r.topologyLabels)
		}
	}
	out := make([]compose.ObservedWorker, 0, len(pods.Items))
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil {
			continue // no NodeSet owns it
		}
		w := compose.ObservedWorker{Name: workerpod.SlurmNode(p), NodeSet: owner.Name, Location: locations[p.Spec.NodeName]}
		if isRegistered(p) {
			w.Registered = p.UID
		}
		out = append(out, w)
	}
	return out, nil
}

// isRegistered reports whether Slurm has the node of a worker.
func isRegistered(p *corev1.Pod) bool {
	c := workerpod.Condition(p, slinkyv1beta1.PodConditionRegistered)
	return c != nil && c.Status == corev1.ConditionTrue
}

// placementChanges lets through what matters about a worker: on which Kubernetes node it is, and whether Slurm has it.
func placementChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, okay := e.ObjectNew.(*corev1.Pod)
		return !ok || !okay || before.Spec.NodeName != after.Spec.NodeName || isRegistered(before) != isRegistered(after)
	}}
}

// locationChanges lets through the changes of Kubernetes nodes that move them in the network. Which nodes there are is known from the
// workers that run on them.
func (r *reconciler) locationChanges() predicate.Predicate {
	located := func(o client.Object) bool {
		at := topology.Locate(o.GetLabels(), r.topologyLabels)
		return at.Block != "" || len(at.Switches) > 0
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return located(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return located(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !reflect.DeepEqual(topology.Locate(e.ObjectOld.GetLabels(), r.topologyLabels), topology.Locate(e.ObjectNew.GetLabels(), r.topologyLabels))
		},
	}
}

// clusterOfWorker maps a worker to its cluster, whose Controller has the same name.
func clusterOfWorker(_ context.Context, o client.Object) []ctrl.Request {
	name := o.GetLabels()[slinkyv1beta1.LabelCluster]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// clustersInNetworks returns all clusters that depend on where Kubernetes nodes are.
func (r *reconciler) clustersInNetworks(ctx context.Context, _ client.Object) []ctrl.Request {
	var clusters nebiusv1.SlurmClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the SlurmClusters that follow the network")
		return nil
	}
	var out []ctrl.Request
	for i := range clusters.Items {
		if c := &clusters.Items[i]; compose.FollowsNetwork(c) {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return out
}

// soon wakes the objects that an object is mapped to after topologyDelay, once for all events until then.
func soon(of handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, o client.Object, q queue) {
		for _, request := range of(ctx, o) {
			q.AddAfter(request, topologyDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
	}
}
