// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetesnode looks after the Kubernetes nodes that carry workers, one key each. By conditions of the Node it has workers
// drained and machines rebooted, and it deletes Nodes so that their machines are replaced. What to do next is decided in internal/health.
// It runs only when it is asked for.
package kubernetesnode

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

type reconciler struct {
	reconcile.Base
	caches *slurmcache.Registry
	health health.Conditions
	// told is the last Event of each node that waits, by name. One pass runs at a time.
	told map[string]health.Event
	// begun is the last node that became degraded, not ready or suspected, as it was written. Until the cache shows it, no other node becomes
	// so.
	begun *corev1.Node
	// asked are the clusters that are asked about jobs for a node, by the name of the node.
	asked map[string][]types.NamespacedName
}

// Setup registers the controller of Kubernetes nodes. The controller of worker pods adds the indexes that it uses.
func Setup(ctx context.Context, mgr ctrl.Manager, base reconcile.Base, caches *slurmcache.Registry, conditions health.Conditions) error {
	r := &reconciler{Base: base, caches: caches, health: conditions, told: map[string]health.Event{}, asked: map[string][]types.NamespacedName{}}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, rebooterIndex, rebooterOn); err != nil {
		return fmt.Errorf("indexing rebooters by Kubernetes node: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("kubernetesnode").
		For(&corev1.Node{}, builder.WithPredicates(r.nodeChanges())).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.waiting), builder.WithPredicates(othersChanges())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(nodeOf), builder.WithPredicates(podChanges())).
		WatchesRawSource(reconcile.WorkerChanges(caches, r.Client, nodeOf)).
		Complete(base.Traced("kubernetesnode", &corev1.Node{}, r))
	if err != nil {
		return fmt.Errorf("setting up the controller of Kubernetes nodes: %w", err)
	}
	return nil
}

// Reconcile brings one Kubernetes node a step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var node corev1.Node
	if err := r.Client.Get(ctx, req.NamespacedName, &node, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			delete(r.told, req.Name)
			r.wantJobs(req.Name, health.Node{})
			if r.begun != nil && r.begun.Name == req.Name {
				r.begun = nil
			}
			r.Applier.Forget(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: req.Name}})
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if behind, err := r.Applier.Behind(ctx, &node); err != nil || behind {
		return ctrl.Result{}, err // an event of that write is on its way
	}
	step, facts, err := r.decide(ctx, &node)
	if err != nil || step == nil {
		return ctrl.Result{}, err
	}
	if step.Delete {
		err = r.replace(ctx, &node)
	} else {
		err = r.write(ctx, &node, *step)
	}
	if apierrors.IsConflict(err) {
		// A kubelet may have written, and that event does not wake this controller.
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	}
	if err != nil || step.Again.IsZero() {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(time.Millisecond, step.Again.Sub(facts.Now))}, nil
}

// decide gathers and decides. It returns no step when the cache is behind: the event that it lacks is on its way.
func (r *reconciler) decide(ctx context.Context, node *corev1.Node) (*health.Step, health.Node, error) {
	facts, err := r.gather(ctx, node)
	if err != nil {
		return nil, facts, err
	}
	r.wantJobs(node.Name, facts)
	if facts.WaitsForOthers() {
		others, behind, err := r.countOthers(ctx, node)
		if err != nil || behind {
			return nil, facts, err
		}
		facts.Others = others
	}
	step := health.Decide(facts)
	return &step, facts, nil
}

// conflictRetry is how long after a refused write the Node is looked at again: the cache has the new version by then.
const conflictRetry = time.Second

// write writes conditions, tied to the version of the Node that the decision was about.
func (r *reconciler) write(ctx context.Context, node *corev1.Node, step health.Step) error {
	if !step.Writes() {
		r.tell(node, step.Event)
		return nil
	}
	status := corev1ac.NodeStatus()
	for _, c := range step.Written(node, r.Clock.Now()) {
		status.WithConditions(corev1ac.NodeCondition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithLastHeartbeatTime(c.LastHeartbeatTime).WithLastTransitionTime(c.LastTransitionTime))
	}
	apply := corev1ac.Node(node.Name).WithUID(node.UID).WithResourceVersion(node.ResourceVersion).WithStatus(status)
	err := r.Client.Status().Apply(ctx, apply, client.FieldOwner(kube.FieldManager), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("writing the conditions of Node %s: %w: set degradedNodes.reboot or nodeReplacement of the operator's chart, which give the right", node.Name, err)
	case err != nil:
		return fmt.Errorf("writing the conditions of Node %s: %w", node.Name, err)
	}
	written := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID}}
	if apply.ResourceVersion != nil {
		written.ResourceVersion = *apply.ResourceVersion
	}
	r.Applier.Changed(node, written)
	if step.Begins() {
		r.begun = written
	}
	log.FromContext(ctx).Info("Changed the conditions of a Kubernetes node", "reason", step.Event.Reason, "message", step.Event.Message)
	r.tell(node, step.Event)
	return nil
}

// tell makes an Event of the Node. It does not repeat the same Event while the node waits.
func (r *reconciler) tell(node *corev1.Node, e health.Event) {
	if e == r.told[node.Name] {
		return
	}
	if r.told[node.Name] = e; e.Reason == "" {
		delete(r.told, node.Name)
		return
	}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(node, nil, kind, e.Reason, "SetConditions", "%s", e.Message)
}
