// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the loop that the reconcilers of all kinds of objects share, in both API groups. A kind brings five
// functions, each named after what it does:
//
//	Gather   reads facts, and writes nothing.
//	Decide   is pure: facts in, Plan out. It has no client, no clock, no closure.
//	Drive    carries the Plan out, and decides nothing.
//	Observe  reads what runs, and writes nothing.
//	Report   is pure: facts, plan and what was seen to conditions, status and events.
//
// The loop writes the status once, and only when it changed.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/observe/tracing"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

// Object is an object with conditions in its status.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// Kind reconciles the objects of one kind: T is the object, F what is known about one, P what is to be done for it, and O what
// was seen of it afterwards.
type Kind[T Object, F any, P Planned, O any] struct {
	*Base
	// Name is that of the controller; empty is the kind of T.
	Name string
	// New makes an empty object.
	New func() T
	// Effect is the condition about fields without effect, which has another name in each API group; nil writes none.
	Effect func(ignored, notes []string) metav1.Condition
	// Gather reads the facts. A mistake of a user is a fact. An error means that something did not answer: the pass is tried again.
	Gather func(ctx context.Context, obj T) (F, error)
	// Decide returns what is to be done.
	Decide func(facts F) P
	// Drive carries a plan out, and notes in seen what only doing it shows; nil is Base.Apply.
	Drive func(ctx context.Context, obj T, facts F, plan P, seen *O) error
	// Observe looks at what runs; nil looks at nothing.
	Observe func(ctx context.Context, obj T, facts F, plan P, seen *O) error
	// Report returns what came of it. It writes the kind's own fields into the status of obj, which is a copy.
	Report func(obj T, outcome Outcome[F, P, O]) Report
	// Skip reports whether an object is somebody else's, who writes its status; nil skips none.
	Skip func(ctx context.Context, obj T) (bool, error)
	// Finalize cleans up outside of Kubernetes what an object that is being deleted leaves there, and then removes the finalizer of the
	// kind, or returns when to try again; nil does nothing.
	Finalize func(ctx context.Context, obj T) (again time.Time, err error)
	// Gone drops what the process has recorded of an object that does not exist any more. It is called after the last pass of the object
	// has ended, while the watch's event of the deletion may come earlier; nil drops nothing.
	Gone func(obj types.NamespacedName)
	// Pause returns how long to leave an object alone, for a kind that many changes concern together; nil is never.
	Pause func(obj types.NamespacedName) time.Duration
	// Prunes are the kinds of objects that are deleted when they are no longer rendered.
	Prunes []client.Object
}

// Reconcile brings one object a step further.
func (k *Kind[T, F, P, O]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if k.Pause != nil {
		if pause := k.Pause(req.NamespacedName); pause > 0 {
			return ctrl.Result{RequeueAfter: pause}, nil
		}
	}
	obj := k.New()
	if err := k.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if k.Gone != nil && apierrors.IsNotFound(err) {
			k.Gone(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if obj.GetDeletionTimestamp() != nil { // what it owns is collected with it
		if k.Finalize == nil {
			return ctrl.Result{}, nil
		}
		again, err := k.Finalize(ctx, obj)
		return ctrl.Result{RequeueAfter: k.until(again)}, err
	}
	if behind, err := k.Applier.Behind(ctx, obj); err != nil || behind {
		return ctrl.Result{}, err
	}
	if k.Skip != nil {
		if skip, err := k.Skip(ctx, obj); err != nil || skip {
			return ctrl.Result{}, err
		}
	}
	return k.pass(ctx, req, obj)
}

// pass takes an object through the five functions.
func (k *Kind[T, F, P, O]) pass(ctx context.Context, req ctrl.Request, obj T) (ctrl.Result, error) {
	before, ok := obj.DeepCopyObject().(T)
	if !ok {
		return ctrl.Result{}, fmt.Errorf("copying %T: the copy has another type", obj)
	}
	facts, err := k.Gather(ctx, obj)
	if err != nil {
		return ctrl.Result{}, kube.IgnoreLeaving(fmt.Errorf("gathering the facts about %s: %w", req, err))
	}
	outcome := Outcome[F, P, O]{Facts: facts, Plan: k.Decide(facts), Now: k.Clock.Now()}
	plan := outcome.Plan.Common()
	made, driveErr := k.ensureSecrets(ctx, obj, plan.Secrets)
	switch {
	case driveErr != nil && !apierrors.IsForbidden(driveErr):
		return ctrl.Result{}, kube.IgnoreLeaving(driveErr) // the next pass tries again; missing keys are not reported
	case driveErr == nil && made:
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil // the next pass reads them
	}
	if driveErr == nil {
		driveErr = k.drive(ctx, obj, &outcome)
	}
	outcome.Driven = driveErr == nil && len(plan.Problems) == 0
	var observeErr error
	if k.Observe != nil {
		observeErr = k.Observe(ctx, obj, facts, outcome.Plan, &outcome.Seen)
	}
	again := k.Conclude(obj, outcome, driveErr, observeErr)
	_, statusErr := k.Applier.PatchStatus(ctx, before, obj)
	if apierrors.IsConflict(statusErr) {
		statusErr = nil // the object has changed, of which an event is on its way
	}
	if err := errors.Join(driveErr, observeErr, statusErr); err != nil {
		return ctrl.Result{}, kube.IgnoreLeaving(err)
	}
	return ctrl.Result{RequeueAfter: k.until(again)}, nil
}

// Conclude reports on a pass in the status of an object and by events, and returns when to look at it again.
func (k *Kind[T, F, P, O]) Conclude(obj T, outcome Outcome[F, P, O], driveErr, observeErr error) (again time.Time) {
	plan, report := outcome.Plan.Common(), k.Report(obj, outcome)
	if k.Effect != nil {
		report.Conditions = append(report.Conditions, k.Effect(plan.Ignored, plan.Notes))
	}
	k.write(obj, plan, report, outcome.Now, errors.Join(driveErr, observeErr), observeErr)
	return report.Again
}

// drive carries the plan out. Problems that only the server can see join those of the plan; what is left is worth a retry.
func (k *Kind[T, F, P, O]) drive(ctx context.Context, obj T, outcome *Outcome[F, P, O]) error {
	plan := outcome.Plan.Common()
	var err error
	if k.Drive == nil {
		err = k.Apply(ctx, obj, plan, k.Prunes...)
	} else {
		err = k.Drive(ctx, obj, outcome.Facts, outcome.Plan, &outcome.Seen)
	}
	problems, rest := problem.FromError(err)
	plan.Problems = append(plan.Problems, problems...)
	return rest
}

// until is the time from now to t, at least a moment, or zero when t is not set.
func (k *Kind[T, F, P, O]) until(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(time.Millisecond, t.Sub(k.Clock.Now()))
}

// Objects that a component makes delay its end in a foreground deletion. Where the API server enforces rights on
// that (admission plugin OwnerReferencesPermissionEnforcement, as on OpenShift), it takes the right to the owner's finalizers.
//
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings/finalizers;controllers/finalizers;loginsets/finalizers;nodesets/finalizers;restapis/finalizers;tokens/finalizers,verbs=update

// There, too, a client that changes the owners of an object must be allowed to delete it: NodeSets share a budget.
//
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=delete

// Base is what every reconciler works with.
type Base struct {
	// Reader reads what specs refer to, and has the client.
	reference.Reader
	Applier  *kube.Applier
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Images are used where an object names none.
	Images image.Set
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// Concurrency is the number of objects of the kind that are reconciled at once.
	Concurrency int
	// Process distinguishes this process of the operator from all others, which may believe to lead as well.
	Process string
	// Traces makes spans of passes; nil makes none.
	Traces *tracing.Tracing
}

// Traced is the reconciler of a controller about objects of a kind, with a span for each pass where traces are on.
func (b *Base) Traced(controller string, object client.Object, r ctrlreconcile.Reconciler) ctrlreconcile.Reconciler {
	return b.Traces.Reconciler(controller, object, b.Client, r)
}

// Plan is what is to be done for one object. It is data only: Decide makes it of facts, Drive carries it out. A kind that has
// more to do embeds it in a plan of its own.
type Plan struct {
	// Output is what has to exist. With problems, nothing of it but the Secrets is applied.
	render.Output
	// Notes are about fields that have an effect which users may not expect.
	Notes []string
	// Keep are objects that are neither rendered nor pruned: what still serves while its successor starts.
	Keep []client.Object
	// Release are objects that several owners share and that this one does not need any more.
	Release []client.Object
	// Delete are objects of kinds that are not pruned, because a cluster may not serve them. They are deleted if the object
	// controls them.
	Delete []client.Object
}

// Common returns the part of a plan that all kinds have.
func (p *Plan) Common() *Plan { return p }

// Planned is a Plan, or a struct that embeds one.
type Planned interface{ Common() *Plan }

// Apply carries out what all plans have in common: it deletes and releases what is not wanted, applies what was rendered, and
// prunes the given kinds of objects. With problems only the deletions take place, and with an object that cannot be written nothing.
func (b *Base) Apply(ctx context.Context, obj client.Object, plan *Plan, prunes ...client.Object) error {
	if len(plan.Problems) > 0 {
		return b.deleteAll(ctx, obj, plan.Delete)
	}
	desired := make([]client.Object, len(plan.Objects))
	for i, o := range plan.Objects {
		desired[i] = o
	}
	pending, err := b.Applier.Examine(ctx, obj, desired...)
	if err != nil {
		return err
	}
	if err := b.deleteAll(ctx, obj, plan.Delete); err != nil {
		return err
	}
	for _, shared := range plan.Release {
		if err := b.Applier.Release(ctx, obj, shared); err != nil {
			return err
		}
	}
	result, err := pending.Apply(ctx)
	if err == nil && len(prunes) > 0 {
		var pruned kube.Result
		pruned, err = b.Applier.Prune(ctx, obj, append(desired, plan.Keep...), prunes...)
		result = result.Join(pruned)
	}
	if result.Wrote() {
		log.FromContext(ctx).Info("Applied what was rendered", "changes", result.String())
	}
	return err
}

// deleteAll deletes objects that the owner controls. They are looked up on the server, since no cache has them.
func (b *Base) deleteAll(ctx context.Context, owner client.Object, objects []client.Object) error {
	var errs []error
	for _, o := range objects {
		errs = append(errs, b.deleteOwned(ctx, owner, o))
	}
	return errors.Join(errs...)
}

func (b *Base) deleteOwned(ctx context.Context, owner, o client.Object) error {
	gvk, err := b.Client.GroupVersionKindFor(o)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", o, err)
	}
	key := client.ObjectKeyFromObject(o)
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	err = b.Live.Get(ctx, key, live)
	if err == nil && metav1.IsControlledBy(live, owner) && live.DeletionTimestamp == nil {
		uid := live.UID
		err = b.Client.Delete(ctx, live, client.Preconditions{UID: &uid})
		if err == nil {
			log.FromContext(ctx).Info("Deleted an object that is not wanted any more", "kind", gvk.Kind, "name", key)
		}
	}
	if err = IgnoreGone(err); err != nil {
		return fmt.Errorf("deleting %s %s: %w", gvk.Kind, key, err)
	}
	return nil
}

// IgnoreGone forgives that an object is gone, or that another one has its name, or that it has just changed: an event is on
// its way.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
