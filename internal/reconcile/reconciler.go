// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile is what the reconcilers of all component kinds have in common: gather facts, let pure code decide,
// apply what it returns, observe what runs, and write the status once. A kind brings three functions and its watches.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

// Base is what every reconciler works with.
type Base struct {
	// Client reads from the manager's cache and writes to the server. Of Secrets, ConfigMaps and workloads the cache holds
	// only those that Coxswain made.
	Client client.Client
	// Live reads from the server: users' Secrets and ConfigMaps, which are not kept in memory.
	Live client.Reader
	// References is a cache of the metadata of all Secrets and ConfigMaps, watched to notice that one changed.
	References cache.Cache
	Applier    *kube.Applier
	Recorder   events.EventRecorder
	Clock      clock.PassiveClock
	// Images are used where an object names none.
	Images image.Set
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// Concurrency is the number of objects of the kind that are reconciled at once.
	Concurrency int
	// Process tells this process of the operator from all others, which may believe to lead as well.
	Process string
}

// Object is a component object.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// Plan is what a kind decided about one object, and what it saw of it.
type Plan struct {
	render.Output
	// Conditions are those of the kind's own, beside the summary; their observedGeneration is filled in.
	Conditions []metav1.Condition
	// Parts are what has to be ready for the object to be ready.
	Parts []kube.Part
	// Keep are objects that are neither rendered nor pruned: what still serves while its successor starts.
	Keep []client.Object
	// ReadyReason is why the object is ready when it is; empty means Available.
	ReadyReason string
	// Applied, when it is set, is called once everything that was rendered is in place; it may set status fields that
	// would be untrue before.
	Applied func()
	// Observe, when it is set, is called instead of the Reconciler's: for a kind that needs what was gathered for the decision.
	Observe func(ctx context.Context, plan *Plan) error
	// Again is when the plan may change by the mere passing of time; zero when it does not.
	Again time.Time
}

// What a component makes holds up the end of the component in a foreground deletion. Where the API server enforces rights on
// that (admission plugin OwnerReferencesPermissionEnforcement, as on OpenShift), it takes the right to the owner's finalizers.
//
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings/finalizers;controllers/finalizers;loginsets/finalizers;nodesets/finalizers;restapis/finalizers;tokens/finalizers,verbs=update

// In the same place, whoever changes the owners of an object must be allowed to delete it: NodeSets share a budget.
//
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=delete

// Reconciler reconciles one kind of component.
type Reconciler[T Object] struct {
	Base
	// New makes an empty object.
	New func() T
	// Decide gathers the facts about an object and renders what it needs. Mistakes of users go to Plan.Problems, what did
	// not answer is an error.
	Decide func(ctx context.Context, obj T) (Plan, error)
	// Observe looks at what runs, sets the kind's own status fields in obj and adds parts and conditions to the plan.
	Observe func(ctx context.Context, obj T, plan *Plan) error
	// Finalize cleans up outside of Kubernetes what an object leaves that is being deleted, and then removes the finalizer of
	// the kind, or says when to try again; nil does nothing.
	Finalize func(ctx context.Context, obj T) (again time.Time, err error)
	// Pause is how long an object is to be left alone yet, for a kind that many changes concern together; nil never is.
	Pause func(obj types.NamespacedName) time.Duration
	// Prunes are the kinds of objects that are deleted when they are no longer rendered.
	Prunes []client.Object
}

// Reconcile brings one object a step further.
func (r *Reconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Pause != nil {
		if pause := r.Pause(req.NamespacedName); pause > 0 {
			return ctrl.Result{RequeueAfter: pause}, nil
		}
	}
	obj := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if obj.GetDeletionTimestamp() != nil { // what it owns is collected with it
		if r.Finalize == nil {
			return ctrl.Result{}, nil
		}
		again, err := r.Finalize(ctx, obj)
		return ctrl.Result{RequeueAfter: r.until(again)}, err
	}
	if behind, err := r.Applier.Behind(ctx, obj); err != nil || behind {
		return ctrl.Result{}, err
	}
	before, ok := obj.DeepCopyObject().(T)
	if !ok {
		return ctrl.Result{}, fmt.Errorf("copying %T: the copy has another type", obj)
	}

	plan, err := r.Decide(ctx, obj)
	if err != nil {
		return ctrl.Result{}, kube.IgnoreLeaving(fmt.Errorf("gathering the facts about %s: %w", req, err))
	}
	applyErr := r.apply(ctx, obj, &plan)
	observeErr := r.observe(ctx, obj, &plan)
	if err := kube.IgnoreLeaving(errors.Join(applyErr, observeErr)); apierrors.IsForbidden(err) {
		// Nothing in the spec is wrong, so that only this tells why nothing happens.
		plan.Parts = append(plan.Parts, kube.Part{
			Name: "objects", Reason: slinkyv1beta1.ReasonApplyFailed, Message: strings.ReplaceAll(err.Error(), "\n", "; "),
		})
	}
	r.summarize(obj, &plan, observeErr == nil)
	_, statusErr := r.Applier.PatchStatus(ctx, before, obj)
	if apierrors.IsConflict(statusErr) {
		statusErr = nil // the object has changed, of which an event is on its way
	}
	if err := errors.Join(applyErr, observeErr, statusErr); err != nil {
		return ctrl.Result{}, kube.IgnoreLeaving(err)
	}
	return ctrl.Result{RequeueAfter: r.until(plan.Again)}, nil
}

func (r *Reconciler[T]) observe(ctx context.Context, obj T, plan *Plan) error {
	if plan.Observe != nil {
		return plan.Observe(ctx, plan)
	}
	return r.Observe(ctx, obj, plan)
}

// until is the time from now to t, at least a moment, or zero when t is not set.
func (r *Reconciler[T]) until(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(time.Millisecond, t.Sub(r.Clock.Now()))
}

// apply writes what the plan asks for, unless the plan has problems. Problems that only the server can see join those of
// the plan; what is left is worth a retry.
func (r *Reconciler[T]) apply(ctx context.Context, obj T, plan *Plan) error {
	if len(plan.Problems) > 0 {
		return nil
	}
	desired := make([]client.Object, len(plan.Objects))
	for i, o := range plan.Objects {
		desired[i] = o
	}
	result, err := r.Applier.Apply(ctx, obj, desired...)
	if err == nil && len(r.Prunes) > 0 {
		var pruned kube.Result
		pruned, err = r.Applier.Prune(ctx, obj, append(desired, plan.Keep...), r.Prunes...)
		result = result.Join(pruned)
	}
	if result.Wrote() {
		log.FromContext(ctx).Info("Applied what was rendered", "changes", result.String())
	}
	if err == nil && plan.Applied != nil {
		plan.Applied()
	}
	problems, rest := problem.FromError(err)
	plan.Problems = append(plan.Problems, problems...)
	return rest
}

// summarize computes all conditions and tells by events what is new.
func (r *Reconciler[T]) summarize(obj T, plan *Plan, observed bool) {
	conditions := obj.GetConditions()
	now := r.Clock.Now()
	plan.Conditions = append(plan.Conditions, ignoredFields(plan.Ignored))
	for _, c := range plan.Conditions {
		c.ObservedGeneration = obj.GetGeneration()
		kube.SetCondition(&conditions, c, now)
	}
	switch {
	case len(plan.Problems) > 0:
		// Nothing was applied, so that what runs is not what the spec says in any case. The mistakes come first.
		plan.Parts = nil
	case !observed:
		plan.Parts = append(plan.Parts, kube.Part{Name: "workload", Reason: slinkyv1beta1.ReasonWaiting, Message: "its state could not be read"})
	}
	kube.Report(r.Recorder, obj, &conditions, kube.Summary{
		Generation: obj.GetGeneration(), Now: now, Parts: plan.Parts, ReadyReason: plan.ReadyReason, Problems: plan.Problems,
	})
	obj.SetConditions(conditions)
}

func ignoredFields(paths []string) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionFieldsIgnored, Status: metav1.ConditionFalse,
		Reason: slinkyv1beta1.ReasonAllFieldsUsed, Message: "every field that is set has its effect",
	}
	if len(paths) > 0 {
		c.Status, c.Reason = metav1.ConditionTrue, slinkyv1beta1.ReasonFieldUnsupported
		c.Message = fmt.Sprintf("set, but without effect in this version: %v", paths)
	}
	return c
}

// kindOf is the kind of a typed object, which does not carry it itself.
func kindOf(scheme *runtime.Scheme, obj client.Object) (string, error) {
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return "", fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	return kinds[0].Kind, nil
}

// Failed is the output of a render that could not take place.
func Failed(problems problem.List) render.Output { return render.Output{Problems: problems} }

// IgnoreGone forgives that an object is gone, or that another one has its name, or that it has just changed: an event is on
// its way.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
