// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	rendercontroller "github.com/coxswain-hpc/coxswain/internal/render/controller"
)

// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=servicemonitors.monitoring.coreos.com,verbs=list;watch

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
				if c := &list.Items[i]; rendercontroller.WantsServiceMonitor(c) {
					out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
				}
			}
			return out
		})))
}
