// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	rendercontroller "github.com/coxswain-hpc/coxswain/internal/render/controller"
)

// +kubebuilder:rbac:groups=security-profiles-operator.x-k8s.io,resources=apparmorprofiles,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=k8s.mariadb.com,resources=mariadbs;grants,verbs=get;list;watch;create;patch;delete

// Definitions are the names of the CRDs of others that this controller looks for.
func Definitions() []string {
	return []string{rendercontroller.ServiceMonitorDefinition, compose.PodMonitorDefinition, compose.MariaDBDefinition, compose.GrantDefinition, compose.AppArmorProfileDefinition}
}

// installed says which kinds of other operators there are.
func (r *reconciler) installed(ctx context.Context) (out compose.Installed, err error) {
	out.ServiceMonitors, err = r.definitions.Serves(ctx, r.Client.RESTMapper(), rendercontroller.ServiceMonitorDefinition, rendercontroller.ServiceMonitorKind)
	if err != nil {
		return out, err
	}
	out.PodMonitors, err = r.definitions.Serves(ctx, r.Client.RESTMapper(), compose.PodMonitorDefinition, compose.PodMonitorKind)
	if err != nil {
		return out, err
	}
	out.AppArmorProfiles, err = r.definitions.Serves(ctx, r.Client.RESTMapper(), compose.AppArmorProfileDefinition, compose.AppArmorProfileKind)
	if err != nil {
		return out, err
	}
	out.MariaDB = true
	for definition, kind := range map[string]schema.GroupVersionKind{compose.MariaDBDefinition: compose.MariaDBKind, compose.GrantDefinition: compose.GrantKind} {
		served, err := r.definitions.Serves(ctx, r.Client.RESTMapper(), definition, kind)
		if err != nil {
			return out, err
		}
		if err := r.later.Follow(ctx, served, kind); err != nil {
			return out, err
		}
		out.MariaDB = out.MariaDB && served
	}
	return out, nil
}

// watchDefinitions wakes all SlurmClusters when one of these kinds comes or goes.
func (r *reconciler) watchDefinitions(b *builder.Builder) {
	for _, definition := range Definitions() {
		r.definitions.Watch(b, definition, r.all)
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
