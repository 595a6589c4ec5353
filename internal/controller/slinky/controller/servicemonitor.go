// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	render "github.com/coxswain-hpc/coxswain/internal/render/controller"
)

// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=servicemonitors.monitoring.coreos.com,verbs=list;watch

// serviceMonitor adds the ServiceMonitor that the spec asks for, where the cluster has that kind, and deletes one that it
// does not ask for any more.
func (r *reconciler) serviceMonitor(ctx context.Context, c *slinkyv1beta1.Controller, plan *reconcile.Plan) error {
	served, err := kube.Serves(ctx, r.definitions, r.Client.RESTMapper(), render.ServiceMonitorDefinition, render.ServiceMonitorKind)
	switch wanted := render.WantsServiceMonitor(c); {
	case err != nil:
		return err
	case wanted && !served:
		plan.Ignore(true, "spec.metrics.serviceMonitor (the cluster has no CRD "+render.ServiceMonitorDefinition+")")
	case wanted:
		plan.Add(render.ServiceMonitor(c))
	case served:
		return r.deleteServiceMonitor(ctx, c)
	}
	return nil
}

func (r *reconciler) deleteServiceMonitor(ctx context.Context, c *slinkyv1beta1.Controller) error {
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.ServiceMonitorName()}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(render.ServiceMonitorKind)
	err := r.Live.Get(ctx, key, live)
	if err == nil && metav1.IsControlledBy(live, c) && live.DeletionTimestamp == nil {
		log.FromContext(ctx).Info("Deleted a ServiceMonitor that is not wanted any more", "name", key.Name)
		err = r.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID})
	}
	if apierrors.IsNotFound(err) || err == nil {
		return nil
	}
	return fmt.Errorf("deleting ServiceMonitor %s: %w", key, reconcile.IgnoreGone(err))
}

// watchDefinition wakes the Controllers that ask for a ServiceMonitor when that kind comes or goes.
func (r *reconciler) watchDefinition(b *builder.Builder) {
	definition := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	b.WatchesRawSource(source.Kind(r.definitions, definition, handler.TypedEnqueueRequestsFromMapFunc(
		func(ctx context.Context, _ *metav1.PartialObjectMetadata) []ctrl.Request {
			var list slinkyv1beta1.ControllerList
			if err := r.Client.List(ctx, &list); err != nil {
				log.FromContext(ctx).Error(err, "Could not find the Controllers that ask for a ServiceMonitor")
				return nil
			}
			var out []ctrl.Request
			for i := range list.Items {
				if c := &list.Items[i]; render.WantsServiceMonitor(c) {
					out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
				}
			}
			return out
		})))
}
