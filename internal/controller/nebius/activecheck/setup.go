// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package activecheck reconciles ActiveChecks: each becomes a CronJob and a Job that runs once after creation, and the status shows how the
// last Job went. Kubernetes runs the Jobs of checks of type k8sJob. This package runs those of type slurmJob: it submits Slurm jobs, waits
// for their ends, reacts to them, and writes the status of the Job.
package activecheck

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks/status,verbs=patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=activechecks/finalizers,verbs=update
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=slurmclusters;nodesets,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

type reconciler struct {
	reconcile.Base
	caches  *slurmcache.Registry
	budgets *budget.Budgets
	memory  memory
}

// Index adds the index by which ActiveChecks are found by what they refer to.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	return reference.AddIndex(ctx, mgr, &nebiusv1alpha1.ActiveCheck{}, references)
}

// references returns what the runs of a check need besides its spec.
func references(c *nebiusv1alpha1.ActiveCheck) (out []string) {
	if c.Spec.PodTemplateNameRef != "" {
		out = append(out, reference.To("PodTemplate", c.Spec.PodTemplateNameRef))
	}
	if job := c.Spec.K8sJobSpec; job != nil && job.ScriptRefName != "" {
		out = append(out, reference.To("ConfigMap", job.ScriptRefName))
	}
	if job := c.Spec.SlurmJobSpec; job != nil && job.SbatchScriptRefName != "" {
		out = append(out, reference.To("ConfigMap", job.SbatchScriptRefName))
	}
	for _, v := range activecheckplan.Variables(c) {
		if source, _, refers := activecheckplan.SourceOf(v); refers {
			out = append(out, reference.To(source.Kind, source.Name))
		}
	}
	return out
}

// Setup registers the controller of ActiveChecks.
func Setup(mgr ctrl.Manager, base reconcile.Base, caches *slurmcache.Registry, budgets *budget.Budgets) error {
	r := &reconciler{Base: base, caches: caches, budgets: budgets}
	return r.kind().Setup(mgr, reconcile.Watches{
		List: &nebiusv1alpha1.ActiveCheckList{}, PodTemplates: true,
		Owns: []client.Object{&batchv1.CronJob{}, &batchv1.Job{}},
		Other: func(b *builder.Builder) {
			b.WatchesRawSource(reconcile.SlurmChanges(caches, r.wake))
			b.Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(checkOfRun))
			b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(needed), builder.WithPredicates(needy()))
			b.Watches(&nebiusv1.SlurmCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(gateChanges()))
			b.Watches(&nebiusv1alpha1.ActiveCheck{}, handler.EnqueueRequestsFromMapFunc(r.beside), builder.WithPredicates(dependencyChanges()))
		},
	})
}

func (r *reconciler) kind() *reconcile.Kind[*nebiusv1alpha1.ActiveCheck, facts, *plan, struct{}] {
	return &reconcile.Kind[*nebiusv1alpha1.ActiveCheck, facts, *plan, struct{}]{
		Base:   &r.Base,
		New:    func() *nebiusv1alpha1.ActiveCheck { return &nebiusv1alpha1.ActiveCheck{} },
		Effect: compose.Effect,
		Gather: r.gather,
		Decide: decide,
		Drive:  r.drive,
		Report: report,
		Gone:   r.forget,
	}
}

// wake wakes the checks of Slurm jobs whose runs wait for what a Slurm cache now reports.
func (r *reconciler) wake(ctx context.Context, queue reconcile.Queue, change slurmcache.Change) {
	if change.Node != "" && change.Node != slurmcache.Followed {
		return
	}
	for _, request := range r.requests(ctx, change.Cluster.Namespace, func(c *nebiusv1alpha1.ActiveCheck) bool {
		return activecheckplan.IsSlurmJob(c) && c.Spec.SlurmClusterRefName == change.Cluster.Name
	}) {
		queue.Add(request)
	}
}

// forget drops what this process knows about a check that is deleted, or whose jobs belong to another cluster than before.
func (r *reconciler) forget(check types.NamespacedName) {
	from, known := r.memory.drop(check)
	if !known {
		return
	}
	r.budgets.Withdraw(budgetName(check))
	if l, linked := r.caches.Get(from.cluster); linked {
		l.FollowJobs(check.String())
	}
}

// checkOfRun maps a Job that a CronJob owns to the check, which has the name of the CronJob.
func checkOfRun(_ context.Context, o client.Object) []ctrl.Request {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != "CronJob" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}}}
}

// ofCluster maps a SlurmCluster to its checks.
func (r *reconciler) ofCluster(ctx context.Context, o client.Object) []ctrl.Request {
	return r.requests(ctx, o.GetNamespace(), func(c *nebiusv1alpha1.ActiveCheck) bool { return c.Spec.SlurmClusterRefName == o.GetName() })
}

// beside maps a check to the other checks of its namespace, any of which may depend on it, or be in a cycle with it.
func (r *reconciler) beside(ctx context.Context, o client.Object) []ctrl.Request {
	return r.requests(ctx, o.GetNamespace(), func(c *nebiusv1alpha1.ActiveCheck) bool { return len(c.Spec.DependsOn) > 0 && c.Name != o.GetName() })
}

// requests returns the checks of a namespace that a change concerns.
func (r *reconciler) requests(ctx context.Context, namespace string, concerned func(*nebiusv1alpha1.ActiveCheck) bool) (out []ctrl.Request) {
	var list nebiusv1alpha1.ActiveCheckList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the ActiveChecks of a namespace", "namespace", namespace)
		return nil
	}
	for i := range list.Items {
		if concerned(&list.Items[i]) {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// gateChanges lets through the changes of a SlurmCluster that decide whether its checks run.
func gateChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*nebiusv1.SlurmCluster)
		after, also := e.ObjectNew.(*nebiusv1.SlurmCluster)
		return ok && also && (before.Status.Phase != after.Status.Phase || before.Spec.Maintenance != after.Spec.Maintenance ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil))
	}}
}

// dependencyChanges lets through the changes of a check on which others may depend.
func dependencyChanges() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*nebiusv1alpha1.ActiveCheck)
		after, also := e.ObjectNew.(*nebiusv1alpha1.ActiveCheck)
		return ok && also && activecheckplan.Last(before) != activecheckplan.Last(after)
	}})
}
