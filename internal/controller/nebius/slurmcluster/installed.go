// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
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

// exporter writes the condition of the exporter, if the spec asks for one. Neither the phase nor Ready depend on it: a cluster without an
// exporter runs jobs all the same.
func (s *status) exporter() {
	const kind = nebiusv1.ConditionExporterAvailable
	exporter, part := s.composed.Components.Exporter, s.seen.Exporter
	switch {
	case exporter == nil:
		s.report.Drop = append(s.report.Drop, kind)
	case *exporter.Spec.Replicas == 0:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "there is no exporter while slurmctld is stopped")
	case part.Ready:
		s.report.SetCondition(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, part.Name+": "+part.Message)
	default:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, part.Name+": "+part.Message)
	}
}

// sConfigController writes the condition of the program that writes files into the jail.
func (s *status) sConfigController() {
	const kind = nebiusv1.ConditionSConfigControllerAvailable
	size := s.cluster.Spec.SConfigController.Node.Size
	switch {
	case s.composed.Jail.Condition == nil:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "the cluster has no jail to write files into")
	case size != nil && *size == 0:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.sConfigController.node.size is 0")
	case s.cluster.Spec.Maintenance.Downscaled():
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "nothing is written into the jail during maintenance")
	case s.composed.Jail.Paused:
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, "nothing else is written into the jail while it is overwritten")
	default:
		s.component(kind, s.sConfigControllerPart()...)
	}
}

// sConfigControllerPart returns the program that writes files into the jail as a part of the cluster; none where it rests.
func (s *status) sConfigControllerPart() []kube.Part {
	writer := s.composed.Components.SConfigController
	switch {
	case s.composed.Jail.Condition == nil:
		return nil
	case writer == nil:
		return []kube.Part{s.awaitsJail(kube.Part{Name: "Deployment " + s.cluster.SConfigControllerName(), Reason: kube.ReasonWaiting, Message: "is not created yet"})}
	case *writer.Spec.Replicas == 0:
		return nil
	}
	return []kube.Part{s.seen.SConfigController}
}
