// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workerkeys gets a changed auth/slurm key to running workers within seconds. Workers are not replaced for it, since that would
// cost their jobs: a kubelet writes the files of a Secret anew in a running pod, and slurmd reads them. But a kubelet looks at a pod's
// files about once a minute, and at once when the pod changes. So the pods get a stamp.
//
// Without this package the key arrives a minute or two later. What was stamped is remembered in memory alone: after a
// restart of the operator nothing is stamped until a key changes again, and a change in between is left to the kubelets.
package workerkeys

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
)

// +kubebuilder:rbac:groups=slinky.slurm.net,resources=controllers,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch

const (
	// fieldManager owns AnnotationWantedKey and nothing else.
	fieldManager = kube.FieldManager + "-keys"
	// maxStamps bounds the writes for one key. Pods beyond it get the key at the kubelet's own pace.
	maxStamps = 1000
)

type reconciler struct {
	reconcile.Base
	// seen are the digests of the keys that Controllers had at the last look.
	seen perkey.Memory[types.NamespacedName, string]
}

// Setup registers the controller.
func Setup(mgr ctrl.Manager, base reconcile.Base) error {
	r := &reconciler{Base: base}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("workerkeys").
		For(&slinkyv1beta1.Controller{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: base.Concurrency})
	base.WatchSecrets(b, &slinkyv1beta1.ControllerList{})
	if err := b.Complete(base.Traced("workerkeys", &slinkyv1beta1.Controller{}, r)); err != nil {
		return fmt.Errorf("setting up the controller of workers' keys: %w", err)
	}
	return nil
}

// Reconcile stamps the workers of one Controller when its key has changed since the last look.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := &slinkyv1beta1.Controller{}
	if err := r.Client.Get(ctx, req.NamespacedName, c); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.seen.Forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading Controller %s: %w", req, err)
	}
	_, digest, err := r.SlurmKey(ctx, c.Namespace, *c.AuthSlurmRef(), "spec.slurmKeyRef")
	if err != nil {
		// The Controller's own reconciler reports a key that is missing or bad.
		_, rest := problem.FromError(err)
		return ctrl.Result{}, rest
	}
	if known := r.seen.Get(req.NamespacedName); known != "" && known != digest {
		missed, err := r.stamp(ctx, c, digest)
		if err != nil {
			return ctrl.Result{}, err
		}
		if missed {
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
	}
	r.seen.Set(req.NamespacedName, digest)
	return ctrl.Result{}, nil
}

// stamp stamps the workers that do not have the stamp. missed reports that one changed meanwhile, of which no event arrives here.
func (r *reconciler) stamp(ctx context.Context, c *slinkyv1beta1.Controller, digest string) (missed bool, err error) {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabels{slinkyv1beta1.LabelCluster: c.Name}); err != nil {
		return false, fmt.Errorf("listing the workers of %s/%s: %w", c.Namespace, c.Name, err)
	}
	var failures []error
	stamped := 0
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || p.Annotations[slinkyv1beta1.AnnotationWantedKey] == digest {
			continue
		}
		if stamped == maxStamps {
			break
		}
		_, err := kube.Mark(ctx, r.Client, &p, fieldManager, kube.Marks{Annotations: map[string]string{slinkyv1beta1.AnnotationWantedKey: digest}})
		missed = missed || apierrors.IsConflict(err)
		if reconcile.IgnoreGone(err) != nil {
			failures = append(failures, err)
		}
		stamped++
	}
	log.FromContext(ctx).Info("Let kubelets look at the changed auth/slurm key", "workers", stamped)
	return missed, errors.Join(failures...)
}
