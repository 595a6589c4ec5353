// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jailedconfig writes the files of JailedConfigs into the jail and has Slurm reread its configuration. It is the controller
// of program sconfigcontroller.
//
// JailedConfigs with the same aggregation label are one group, which is written as one batch. The unit of work is therefore a
// group and not an object, and the loop of internal/reconcile, which has one object, does not fit. The order is the same: gather,
// decide, drive, report.
package jailedconfig

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// Slurm is what the controller asks Slurm for.
type Slurm interface {
	Nodes(ctx context.Context, since time.Time) (rest.NodeList, error)
	Diag(ctx context.Context) (rest.Diag, error)
	Reconfigure(ctx context.Context) error
	need.Slurm
	// Close gives the connections back: slurmrestd has few.
	Close()
}

// Options are what the controller works with.
type Options struct {
	Writer *batch.Writer
	// Slurm connects to Slurm.
	Slurm func(ctx context.Context) (Slurm, error)
	// Wait is how long slurmds may take to read a configuration, and Poll how often they are looked at.
	Wait, Poll time.Duration
	// RetryFirst and RetryLast are the pauses after the first failure and after many.
	RetryFirst, RetryLast time.Duration
	Concurrency           int
	Clock                 clock.PassiveClock
}

type reconciler struct {
	Options
	client.Reader
	applier  *kube.Applier
	recorder events.EventRecorder
	waiting  waiting
}

// Setup registers the controller.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &reconciler{
		Options: o, Reader: mgr.GetClient(), applier: kube.NewApplier(mgr.GetClient(), mgr.GetAPIReader()),
		recorder: mgr.GetEventRecorder("sconfigcontroller"), waiting: waiting{rounds: map[string]*round{}},
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("jailedconfig").
		Watches(&nebiusv1alpha1.JailedConfig{}, handler.EnqueueRequestsFromMapFunc(requests),
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.users)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](o.RetryFirst, o.RetryLast),
		}).Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of JailedConfigs: %w", err)
	}
	return nil
}

// groupPrefix begins the request for a group. The name of an object never has a colon.
const groupPrefix = "group:"

// groupOf returns the name of the request for the group of a JailedConfig, or for the JailedConfig alone.
func groupOf(c client.Object) string {
	if group := c.GetLabels()[nebiusv1alpha1.LabelJailedAggregation]; group != "" {
		return groupPrefix + group
	}
	return c.GetName()
}

func requests(_ context.Context, c client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: c.GetNamespace(), Name: groupOf(c)}}}
}

// users returns the requests for JailedConfigs that name a ConfigMap.
func (r *reconciler) users(ctx context.Context, m client.Object) []reconcile.Request {
	var list nebiusv1alpha1.JailedConfigList
	if err := r.List(ctx, &list, client.InNamespace(m.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Could not find who uses a ConfigMap", "configMap", m.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.ConfigMap.Name == m.GetName() {
			out = append(out, requests(ctx, &list.Items[i])...)
		}
	}
	return out
}
