// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rebooter drains and reboots the Kubernetes node on which it runs, when the conditions of the Node ask for that. It is the
// controller of program rebooter. What to do next is decided in internal/controller/rebooter/rebooterplan.
package rebooter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter/rebooterplan"
)

// Options are what the controller works with.
type Options struct {
	// Node is the name of the Kubernetes node.
	Node string
	// Boot is the id of the current boot.
	Boot string
	// Reboot has the machine reboot, and returns before it goes down.
	Reboot func() error
	Clock  clock.PassiveClock
}

type reconciler struct {
	Options
	client client.Client
	live   client.Reader
	// What this process has tried. One pass runs at a time.
	evictions map[types.UID]rebooterplan.Attempt
	reboot    rebooterplan.Attempt
}

// Cached returns the objects that the cache holds: the one Node, and the pods that are bound to it.
func Cached(node string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Node{}: {Field: fields.OneTermEqualSelector("metadata.name", node), Transform: slimNode},
		&corev1.Pod{}:  {Field: fields.OneTermEqualSelector("spec.nodeName", node), Transform: slimPod},
	}
}

// slimNode drops the fields of a node that nobody reads here: images are most of it.
func slimNode(o any) (any, error) {
	if n, ok := o.(*corev1.Node); ok {
		n.Status = corev1.NodeStatus{Conditions: n.Status.Conditions}
	}
	return o, nil
}

// slimPod drops the fields of a pod that nobody reads here.
func slimPod(o any) (any, error) {
	if p, ok := o.(*corev1.Pod); ok {
		p.ManagedFields = nil
		p.Spec = corev1.PodSpec{NodeName: p.Spec.NodeName, Tolerations: p.Spec.Tolerations}
		p.Status = corev1.PodStatus{Phase: p.Status.Phase}
	}
	return o, nil
}

// Setup registers the controller.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), evictions: map[types.UID]rebooterplan.Attempt{}}
	toNode := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.Node}}}
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("rebooter").
		For(&corev1.Node{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(toNode), builder.WithPredicates(podChanges())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of Node %s: %w", o.Node, err)
	}
	return nil
}

// podChanges lets through the changes that may decide what becomes of a pod.
func podChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, also := e.ObjectNew.(*corev1.Pod)
		return ok && also && rebooterplan.PodOf(before) != rebooterplan.PodOf(after)
	}}
}

// Reconcile brings the node one step further.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var node corev1.Node
	if err := r.client.Get(ctx, req.NamespacedName, &node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	pods, err := r.pods(ctx, r.client)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.forget(pods)
	for {
		next := rebooterplan.Decide(r.facts(&node, pods))
		switch next.Action {
		case rebooterplan.Evict:
			// Each of the pods has a later time for its next attempt now, so that this ends.
			if err := r.evict(ctx, next.Evict); err != nil {
				return ctrl.Result{}, err
			}
			continue
		case rebooterplan.Reboot:
			return r.restart(ctx, req)
		case rebooterplan.Wait, rebooterplan.Tell, rebooterplan.Cordon, rebooterplan.SetTaint, rebooterplan.Release:
		}
		err := r.write(ctx, &node, next)
		return r.again(next), err
	}
}

// again returns when to look again although nothing changes.
func (r *reconciler) again(next rebooterplan.Next) ctrl.Result {
	if next.Again.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(next.Again.Sub(r.Clock.Now()), 1)}
}

func (r *reconciler) facts(node *corev1.Node, pods []rebooterplan.Pod) rebooterplan.Facts {
	return rebooterplan.Facts{Now: r.Clock.Now(), Boot: r.Boot, Node: rebooterplan.NodeOf(node), Pods: pods, Evictions: r.evictions, Reboot: r.reboot}
}

// pods returns the pods of the node, from the cache or from the server. The API server may hold far more pods than the node does.
func (r *reconciler) pods(ctx context.Context, from client.Reader) ([]rebooterplan.Pod, error) {
	var list corev1.PodList
	var options []client.ListOption
	if from == r.live {
		options = append(options, client.MatchingFields{"spec.nodeName": r.Node})
	}
	if err := from.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", r.Node, err)
	}
	out := make([]rebooterplan.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = rebooterplan.PodOf(&list.Items[i])
	}
	return out, nil
}

// forget drops what was tried with pods that are gone.
func (r *reconciler) forget(pods []rebooterplan.Pod) {
	for uid := range r.evictions {
		if !slices.ContainsFunc(pods, func(p rebooterplan.Pod) bool { return p.UID == uid }) {
			delete(r.evictions, uid)
		}
	}
}

// evict asks for the eviction of pods. A refusal of the API server is remembered with its reason; an error is a call without an answer.
func (r *reconciler) evict(ctx context.Context, pods []rebooterplan.Pod) error {
	var errs []error
	for _, p := range pods {
		uid := p.UID
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: uid}}
		err := r.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		})
		refused := ""
		switch {
		case err == nil:
			log.FromContext(ctx).Info("Evicted a pod", "pod", p.Namespace+"/"+p.Name)
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // it is gone, or another one has its name: an event is on its way
		case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
			refused = refusal(err)
		default:
			errs = append(errs, fmt.Errorf("evicting Pod %s/%s: %w", p.Namespace, p.Name, err))
		}
		r.evictions[uid] = r.evictions[uid].Next(r.Clock.Now(), refused)
	}
	return errors.Join(errs...)
}

// refusal returns why the API server refuses an eviction, in its words: the message of a budget has its name and its numbers.
func refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				return cause.Message
			}
		}
	}
	return err.Error()
}

// write changes the Node as the step asks. The patch is tied to the version that was read: if it has changed, an event is on its way.
func (r *reconciler) write(ctx context.Context, node *corev1.Node, next rebooterplan.Next) error {
	after := node.DeepCopy()
	rebooterplan.Write(after, next, r.Clock.Now())
	patch := client.StrategicMergeFrom(node, client.MergeFromWithOptimisticLock{})
	var err error
	switch next.Action {
	case rebooterplan.Tell:
		err = r.client.Status().Patch(ctx, after, patch, client.FieldOwner(rebooterplan.FieldManager))
	case rebooterplan.Cordon, rebooterplan.SetTaint, rebooterplan.Release:
		err = r.client.Patch(ctx, after, patch, client.FieldOwner(rebooterplan.FieldManager))
	case rebooterplan.Wait, rebooterplan.Evict, rebooterplan.Reboot:
		return nil
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("changing Node %s (%s): %w", r.Node, next.Action, err)
	}
	values := []any{"step", next.Action}
	if c := next.Drain; c != nil {
		values = append(values, "drain", c.Reason, "message", c.Message)
	}
	if c := next.Reboot; c != nil {
		values = append(values, "reboot", c.Reason)
	}
	log.FromContext(ctx).Info("Changed the node", values...)
	return nil
}

// restart reboots the machine, if a look at the API server gives the same decision as the cache did.
func (r *reconciler) restart(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var node corev1.Node
	if err := r.live.Get(ctx, req.NamespacedName, &node); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Node %s before its reboot: %w", r.Node, err)
	}
	pods, err := r.pods(ctx, r.live)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := rebooterplan.Decide(r.facts(&node, pods))
	if next.Action != rebooterplan.Reboot {
		// The cache is late, and the event that wakes this is under way.
		return r.again(next), nil
	}
	log.FromContext(ctx).Info("Rebooting the machine", "node", r.Node, "boot", r.Boot)
	if err := r.Reboot(); err != nil {
		return ctrl.Result{}, fmt.Errorf("rebooting node %s: %w", r.Node, err)
	}
	r.reboot = r.reboot.Rebooting(r.Clock.Now())
	return ctrl.Result{RequeueAfter: r.reboot.Again.Sub(r.Clock.Now())}, nil
}
