// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accounting reconciles Accountings: slurmdbd and its embedded database.
package accounting

import (
	"context"
	"errors"
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete

type reconciler struct{ reconcile.Base }

// Index adds the index by which Accountings are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reference.AddIndex(ctx, mgr, &slinkyv1beta1.Accounting{}, references)
}

// Setup registers the controller of Accountings.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	kind := &reconcile.Kind[*slinkyv1beta1.Accounting, facts, *reconcile.Plan, observation]{
		Base:    &r.Base,
		New:     func() *slinkyv1beta1.Accounting { return &slinkyv1beta1.Accounting{} },
		Effect:  render.Effect,
		Gather:  r.gather,
		Decide:  decide,
		Observe: r.observe,
		Report:  report,
		Prunes:  Prunes(),
	}
	return kind.Setup(mgr, reconcile.Watches{
		List:   &slinkyv1beta1.AccountingList{},
		Owns:   []client.Object{&corev1.Secret{}, &corev1.Service{}, &appsv1.StatefulSet{}},
		PodsOf: slinkyv1beta1.NameSlurmdbd,
	})
}

// Prunes returns the kinds of objects that are deleted when they are no longer rendered, as when slurmdbd moves out of the cluster: nobody
// needs the password in its Secret then. Each needs the index of kube.SetupIndexes. Generated keys and passwords are not controlled by the
// Accounting, and stay.
func Prunes() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.Service{}, &appsv1.StatefulSet{}}
}

func references(a *slinkyv1beta1.Accounting) []string {
	refs := []string{reference.To("Secret", a.AuthSlurmRef().Name), reference.To("Secret", a.AuthJwtRef().Name)}
	if ref := a.DatabasePasswordRef(); ref != nil {
		refs = append(refs, reference.To("Secret", ref.Name))
	}
	if a.Spec.JwksKeyRef != nil {
		refs = append(refs, reference.To("ConfigMap", a.Spec.JwksKeyRef.Name))
	}
	refs = append(refs, reference.MungeReferences(a.Spec.Munge)...)
	return append(refs, certificateReferences(a)...)
}

// facts are what is known about an Accounting.
type facts struct {
	slurmdbd.Input
	// keys is the condition about the keys of auth/slurm and of tokens.
	keys metav1.Condition
	// problems are what is wrong with what it refers to.
	problems problem.List
}

func (r *reconciler) gather(ctx context.Context, a *slinkyv1beta1.Accounting) (facts, error) {
	f := facts{Input: slurmdbd.Input{Accounting: a}}
	if a.Spec.External {
		return f, nil
	}
	f.Images = r.Images
	var err error
	if f.Running, err = r.running(ctx, a); err != nil {
		return f, err
	}
	keysErr := r.keys(ctx, &f)
	f.problems, err = problem.FromError(errors.Join(keysErr, r.password(ctx, a, &f.Input), r.certificates(ctx, a, &f.Input)))
	return f, err
}

func decide(f facts) *reconcile.Plan {
	a, plan := f.Accounting, &reconcile.Plan{Output: slurmdbd.Render(f.Input)}
	plan.Problems = append(plan.Problems, f.problems...)
	if a.Spec.External {
		return plan
	}
	plan.Secrets = reference.GeneratedKeys(a)
	if ref := a.DatabasePasswordRef(); ref != nil {
		generated := a.Spec.EmbeddedDatabase != nil && a.Spec.EmbeddedDatabase.PasswordKeyRef == nil
		plan.Ensure(generated, render.Secret{Name: ref.Name, Key: ref.Key, Content: render.RandomText})
	}
	return plan
}

// keys reads the keys and returns the result as a condition in f.
func (r *reconciler) keys(ctx context.Context, f *facts) (err error) {
	a := f.Accounting
	f.SealingKey, f.SlurmKeyDigest, err = r.SlurmKey(ctx, a.Namespace, *a.AuthSlurmRef(), "spec.slurmKeyRef")
	if err == nil {
		f.JwtKeyDigest, err = r.JwtDigest(ctx, a, a.Spec.JwksKeyRef)
	}
	if err == nil {
		f.MungeKeyDigest, err = r.MungeDigest(ctx, a.Namespace, a.Spec.Munge)
	}
	f.keys = reference.KeysMissing(reference.KeysPresent(a), err)
	return err
}

// password reads the password of the database.
func (r *reconciler) password(ctx context.Context, a *slinkyv1beta1.Accounting, in *slurmdbd.Input) error {
	if a.ByCertificate() {
		return nil
	}
	ref := a.DatabasePasswordRef()
	if ref == nil {
		return problem.Errorf("spec", slinkyv1beta1.ReasonInvalidSpec, "slurmdbd needs a database: set storageConfig or embeddedDatabase")
	}
	value, err := r.SecretValue(ctx, a.Namespace, *ref, slurmdbd.PasswordPath(a))
	in.Password = string(value)
	return err
}

// observation is what runs of an Accounting.
type observation struct {
	// database is the embedded database; nil when there is none.
	database *kube.Part
	slurmdbd kube.Part
	// pod is the pod of slurmdbd; nil when there is none.
	pod *corev1.Pod
	// stopped reports whether neither slurmdbd nor its database has a pod, or is to have one.
	stopped bool
}

func (r *reconciler) observe(ctx context.Context, a *slinkyv1beta1.Accounting, _ facts, _ *reconcile.Plan, seen *observation) error {
	if a.Spec.External {
		return nil
	}
	var errs []error
	pods, database := int32(1), reconcile.Workload{Current: true}
	if a.Suspended() {
		pods = 0
	}
	if a.Spec.EmbeddedDatabase != nil {
		part, w, err := r.ObserveWorkload(ctx, a.Namespace, a.DatabaseKey().Name, &appsv1.StatefulSet{}, "database", pods)
		errs = append(errs, err)
		seen.database, database = &part, w
	}
	var err error
	var slurmdbd reconcile.Workload
	seen.slurmdbd, slurmdbd, err = r.ObserveWorkload(ctx, a.Namespace, a.Key().Name, &appsv1.StatefulSet{}, "slurmdbd", pods)
	errs = append(errs, err)
	seen.pod, err = r.pod(ctx, a)
	seen.stopped = pods == 0 && seen.pod == nil && slurmdbd.None() && database.None()
	return errors.Join(append(errs, err)...)
}

func report(a *slinkyv1beta1.Accounting, o reconcile.Outcome[facts, *reconcile.Plan, observation]) reconcile.Report {
	a.Status.ObservedGeneration = a.Generation
	var out reconcile.Report
	if a.Spec.External {
		out.Drop = []string{slinkyv1beta1.ConditionKeysPresent} // of an Accounting that ran here before
		out.Parts = []kube.Part{{Name: "slurmdbd", Ready: true, Reason: slinkyv1beta1.ReasonExternal, Message: "slurmdbd runs elsewhere"}}
		tell(a, &out, Reachable(Sight{Accounting: a, Now: o.Now}))
		return out
	}
	out.Conditions = append(out.Conditions, o.Facts.keys)
	sight := Sight{Accounting: a, Problems: o.Plan.Problems, Now: o.Now, Pod: o.Seen.pod}
	suspension := reconcile.Suspension{
		Suspend: a.Suspended(), Stopped: o.Seen.stopped, Ready: o.Seen.slurmdbd.Ready,
		Before: meta.FindStatusCondition(a.Status.Conditions, slinkyv1beta1.ConditionSuspended),
	}
	if database := o.Seen.database; database != nil && !a.Suspended() {
		sight.EmbeddedStarting = !database.Ready
		out.Parts = append(out.Parts, *database)
	}
	reachable, slurmdbd := Reachable(sight), o.Seen.slurmdbd
	if !slurmdbd.Ready && reachable.Status == metav1.ConditionFalse {
		slurmdbd.Reason, slurmdbd.Message = reachable.Reason, reachable.Message
	}
	if c, ok := suspension.Condition(); ok {
		out.Conditions = append(out.Conditions, c)
	}
	out.Parts, out.ReadyReason = append(out.Parts, suspension.Part(slurmdbd)), suspension.ReadyReason()
	out.Again = sight.Again()
	tell(a, &out, reachable)
	return out
}

// tell adds the condition to the report, and an event when slurmdbd has just lost its database.
func tell(a *slinkyv1beta1.Accounting, out *reconcile.Report, c metav1.Condition) {
	out.Conditions = append(out.Conditions, c)
	before := meta.FindStatusCondition(a.Status.Conditions, c.Type)
	if c.Reason == slinkyv1beta1.ReasonDatabaseUnreachable && (before == nil || before.Reason != c.Reason) {
		out.Events = append(out.Events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: c.Reason, Action: "Observe", Note: c.Message})
	}
}

// running reports whether slurmdbd has a pod or may get one. It is asked only while slurmdbd is suspended.
func (r *reconciler) running(ctx context.Context, a *slinkyv1beta1.Accounting) (bool, error) {
	if !a.Suspended() {
		return false, nil
	}
	pod, err := r.pod(ctx, a)
	if err != nil || pod != nil {
		return pod != nil, err
	}
	var set appsv1.StatefulSet
	if err := r.Client.Get(ctx, a.Key(), &set); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	w, err := reconcile.WorkloadOf(&set)
	return !w.None(), err
}

// pod returns the pod of slurmdbd, or nil.
func (r *reconciler) pod(ctx context.Context, a *slinkyv1beta1.Accounting) (*corev1.Pod, error) {
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: a.Namespace, Name: a.Key().Name + "-0"}
	if err := r.Client.Get(ctx, key, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // no pod is an answer
		}
		return nil, fmt.Errorf("reading Pod %s: %w", key, err)
	}
	return &pod, nil
}
