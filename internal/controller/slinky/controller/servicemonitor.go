// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;create;patch;delete

// Definitions returns the kinds of other operators that this controller looks for.
func Definitions() []foreignkind.Kind { return []foreignkind.Kind{slurmctld.ServiceMonitors()} }

// watchDefinition wakes the Controllers that ask for a ServiceMonitor when that kind comes or goes.
func (r *reconciler) watchDefinition(b *builder.Builder) {
	r.definitions.Watch(b, slurmctld.ServiceMonitorDefinition, func(ctx context.Context) []ctrl.Request {
		var list slinkyv1beta1.ControllerList
		if err := r.Client.List(ctx, &list); err != nil {
			log.FromContext(ctx).Error(err, "Could not find the Controllers that ask for a ServiceMonitor")
			return nil
		}
		var out []ctrl.Request
		for i := range list.Items {
			if c := &list.Items[i]; slurmctld.WantsServiceMonitor(c) {
				out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
			}
		}
		return out
	})
}
