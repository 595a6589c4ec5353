// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeconfigurator reconciles NodeConfigurators: the DaemonSet that configures Kubernetes nodes, and drains and reboots them.
package nodeconfigurator

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodeconfigurators,verbs=list;watch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodeconfigurators/status,verbs=patch
// +kubebuilder:rbac:groups=slurm.nebius.ai,resources=nodeconfigurators/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// facts are what is known about a NodeConfigurator.
type facts struct {
	object *nebiusv1alpha1.NodeConfigurator
	images image.Set
}

// seen is the DaemonSet that runs; nil before it is made.
type seen struct{ set *appsv1.DaemonSet }

// Setup registers the controller of NodeConfigurators.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	kind := &reconcile.Kind[*nebiusv1alpha1.NodeConfigurator, facts, *reconcile.Plan, seen]{
		Base:   &base,
		New:    func() *nebiusv1alpha1.NodeConfigurator { return &nebiusv1alpha1.NodeConfigurator{} },
		Effect: compose.Effect,
		Gather: func(_ context.Context, n *nebiusv1alpha1.NodeConfigurator) (facts, error) {
			return facts{object: n, images: base.Images}, nil
		},
		Decide: decide,
		Observe: func(ctx context.Context, n *nebiusv1alpha1.NodeConfigurator, _ facts, _ *reconcile.Plan, seen *seen) error {
			return observe(ctx, base.Client, n, seen)
		},
		Report: report,
		Prunes: Prunes(),
	}
	return kind.Setup(mgr, reconcile.Watches{Owns: []client.Object{&appsv1.DaemonSet{}, &corev1.ServiceAccount{}}})
}

// Prunes returns the kinds of objects that are deleted when they are no longer composed. The DaemonSet always is.
func Prunes() []client.Object { return []client.Object{&corev1.ServiceAccount{}} }

func decide(f facts) *reconcile.Plan {
	out := compose.NodeConfigurator(f.object, f.images)
	return &reconcile.Plan{Output: out.Output, Notes: out.Notes}
}

func observe(ctx context.Context, c client.Reader, n *nebiusv1alpha1.NodeConfigurator, seen *seen) error {
	var set appsv1.DaemonSet
	key := client.ObjectKey{Namespace: n.Namespace, Name: compose.NodeConfiguratorDaemonSet(n.Name)}
	err := c.Get(ctx, key, &set)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading DaemonSet %s: %w", key, err)
	default:
		seen.set = &set
	}
	return nil
}

func report(n *nebiusv1alpha1.NodeConfigurator, o reconcile.Outcome[facts, *reconcile.Plan, seen]) reconcile.Report {
	pods := rolledOut(o.Seen.set)
	n.Status.UpdateStatus, n.Status.Reason = nebiusv1alpha1.UpdateStatusUpdating, pods.Reason
	switch {
	case len(o.Plan.Problems) > 0:
		n.Status.UpdateStatus, n.Status.Reason = nebiusv1alpha1.UpdateStatusFailed, o.Plan.Problems.Reason()
	case pods.Ready:
		n.Status.UpdateStatus = nebiusv1alpha1.UpdateStatusSucceeded
	}
	return reconcile.Report{Parts: []kube.Part{pods}}
}

// rolledOut reports on how many Kubernetes nodes the pods run as the newest spec wants them.
func rolledOut(set *appsv1.DaemonSet) kube.Part {
	part := kube.Part{Name: "pods", Reason: kube.ReasonRollingOut}
	switch {
	case set == nil:
		part.Message = "the DaemonSet is not created yet"
		return part
	case set.Status.ObservedGeneration < set.Generation:
		part.Message = "the DaemonSet has a new spec"
		return part
	}
	s := set.Status
	rolled := min(s.UpdatedNumberScheduled, s.NumberAvailable)
	part.Message = fmt.Sprintf("rolled out on %d of %d nodes", rolled, s.DesiredNumberScheduled)
	switch {
	case s.UpdatedNumberScheduled < s.DesiredNumberScheduled:
	case rolled < s.DesiredNumberScheduled:
		part.Reason = kube.ReasonPodsNotReady
	default:
		part.Ready, part.Reason = true, kube.ReasonAvailable
	}
	return part
}
