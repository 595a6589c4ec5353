// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// +kubebuilder:rbac:groups=security-profiles-operator.x-k8s.io,resources=apparmorprofiles,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=k8s.mariadb.com,resources=mariadbs;grants,verbs=get;list;watch;create;patch;delete

// Definitions returns the kinds of other operators that this controller looks for.
func Definitions() []foreignkind.Kind {
	return []foreignkind.Kind{slurmctld.ServiceMonitors(), compose.PodMonitors(), compose.MariaDBs(), compose.Grants(), compose.AppArmorProfiles()}
}

// installed returns which kinds of other operators there are.
func (r *reconciler) installed(ctx context.Context) (out compose.Installed, err error) {
	out.MariaDB = foreignkind.Fit{Installed: true}
	for _, kind := range Definitions() {
		fit, err := r.definitions.Fit(ctx, r.Client.RESTMapper(), kind)
		if err != nil {
			return out, err
		}
		switch kind.Definition {
		case slurmctld.ServiceMonitorDefinition:
			out.ServiceMonitors = fit
		case compose.PodMonitorDefinition:
			out.PodMonitors = fit
		case compose.AppArmorProfileDefinition:
			out.AppArmorProfiles = fit
		case compose.MariaDBDefinition, compose.GrantDefinition:
			out.MariaDB = out.MariaDB.And(fit)
			if err := r.later.Follow(ctx, fit.Usable(), kind.GroupVersionKind); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// watchDefinitions wakes all SlurmClusters when one of these kinds comes or goes.
func (r *reconciler) watchDefinitions(b *builder.Builder) {
	for _, definition := range Definitions() {
		r.definitions.Watch(b, definition.Definition, r.all)
	}
}

func (r *reconciler) all(ctx context.Context) []ctrl.Request {
	var list nebiusv1.SlurmClusterList
	if err := r.Client.List(ctx, &list); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the SlurmClusters that a definition concerns")
		return nil
	}
	var out []ctrl.Request
	for i := range list.Items {
		out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
