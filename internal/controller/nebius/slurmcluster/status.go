// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// status rolls up what is known about a cluster.
type status struct {
	cluster *nebiusv1.SlurmCluster
	// composed is what the spec asks for, and problems are those of composing and of applying it.
	composed compose.Output
	problems problem.List
	// applied says that all of it is on the server.
	applied bool
	seen    Seen
	// available says that all components that count are available.
	available bool
	report    reconcile.Report
}

func report(cluster *nebiusv1.SlurmCluster, o reconcile.Outcome[facts, *plan, Seen]) reconcile.Report {
	s := status{cluster: cluster, composed: o.Plan.composed, problems: o.Plan.Problems, applied: o.Driven, seen: o.Seen}
	return s.rollUp()
}

// rollUp writes the status of the cluster and returns its conditions.
func (s *status) rollUp() reconcile.Report {
	s.common()
	s.components()
	s.spec()
	status := &s.cluster.Status
	status.ObservedGeneration = s.cluster.Generation
	status.ReadyWorkers, status.ReadyLogin = new(s.seen.ReadyWorkers), new(s.seen.ReadyLogin)
	switch {
	case !s.applied && (status.Phase == "" || status.Phase == nebiusv1.PhasePending):
		status.Phase = nebiusv1.PhasePending
	case s.available:
		status.Phase = nebiusv1.PhaseAvailable
	default:
		status.Phase = nebiusv1.PhaseNotAvailable
	}
	s.report.Parts = s.parts()
	return s.report
}

// common writes the condition of what the operator itself puts in place.
func (s *status) common() {
	const kind = nebiusv1.ConditionCommonAvailable
	s.available = len(s.problems) == 0 && !s.cluster.Spec.Maintenance.Downscaled()
	switch {
	case len(s.problems) > 0:
		// What is there goes on running as it was.
		s.report.Say(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, "the spec cannot be put into effect, see condition Stalled")
	case s.cluster.Spec.Maintenance.Downscaled():
		s.report.Say(kind, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "spec.maintenance is "+string(s.cluster.Spec.Maintenance))
	case s.applied:
		s.report.Say(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, "keys, configuration and component objects are in place")
	case meta.FindStatusCondition(s.cluster.Status.Conditions, kind) == nil:
		s.report.Say(kind, metav1.ConditionUnknown, nebiusv1.ReasonReconciling, "the first pass over the cluster is not complete")
	}
}

// components writes the condition of each component.
func (s *status) components() {
	nodes, atRest := &s.cluster.Spec.SlurmNodes, s.cluster.Spec.Maintenance.Downscaled()
	s.component(nebiusv1.ConditionControllersAvailable, s.seen.Controller)
	switch {
	case s.workers() == 0:
		s.report.Say(nebiusv1.ConditionWorkersAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "the spec asks for no workers")
	case atRest:
		s.report.Say(nebiusv1.ConditionWorkersAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "there are no workers during maintenance")
	default:
		s.component(nebiusv1.ConditionWorkersAvailable, s.workerParts()...)
	}
	switch {
	case nodes.Login.Size == 0:
		s.report.Say(nebiusv1.ConditionLoginAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.slurmNodes.login.size is 0")
	case atRest:
		s.report.Say(nebiusv1.ConditionLoginAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "there are no login pods during maintenance")
	default:
		s.component(nebiusv1.ConditionLoginAvailable, s.seen.LoginSet)
	}
	if nodes.Accounting.Enabled {
		s.component(nebiusv1.ConditionAccountingAvailable, s.accountingPart())
	} else {
		s.report.Say(nebiusv1.ConditionAccountingAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.slurmNodes.accounting.enabled is false")
	}
}

// component writes the condition of a component that the spec asks for.
func (s *status) component(kind string, parts ...kube.Part) {
	var missing []string
	for _, p := range parts {
		if !p.Ready {
			missing = append(missing, p.Name+": "+p.Message)
		}
	}
	if len(missing) > 0 {
		s.available = false
		s.report.Say(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, strings.Join(missing, "; "))
		return
	}
	messages := make([]string, 0, len(parts))
	for _, p := range parts {
		messages = append(messages, p.Name+": "+p.Message)
	}
	s.report.Say(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, strings.Join(messages, "; "))
}

// workers is the number of workers that the spec asks for when it is not at rest.
func (s *status) workers() int {
	if s.cluster.Spec.Maintenance.Downscaled() {
		return len(s.composed.Components.NodeSets)
	}
	total := 0
	for _, set := range s.composed.Components.NodeSets {
		total += int(set.Replicas())
	}
	return total
}

// workerParts are the NodeSets, with the mistakes of those that are held.
func (s *status) workerParts() []kube.Part {
	parts := slices.Clone(s.seen.NodeSets)
	for i, set := range s.composed.Components.NodeSets {
		for _, held := range s.composed.Held {
			if held.Object == set {
				parts[i] = kube.Part{
					Name: "slurm.nebius.ai NodeSet " + held.NodeSet, Stalled: true,
					Reason: nebiusv1.ReasonInvalidSpec, Message: held.Problems.Message(),
				}
			}
		}
	}
	return parts
}

// accountingPart is slurmdbd, or why there is none although the spec asks for it.
func (s *status) accountingPart() kube.Part {
	if s.composed.Components.Accounting != nil {
		return s.seen.Accounting
	}
	if len(s.problems) > 0 {
		return kube.Part{Name: "spec.slurmNodes.accounting", Stalled: true, Reason: nebiusv1.ReasonInvalidSpec, Message: "has mistakes, see condition Stalled"}
	}
	return kube.Part{
		Name: "spec.slurmNodes.accounting.mariadbOperator", Stalled: true, Reason: nebiusv1.ReasonFieldsNotEffective,
		Message: "this version cannot use the mariadb-operator; use embeddedDB or externalDB",
	}
}

// parts are what the cluster is ready by. A part at rest is ready when it rests.
func (s *status) parts() []kube.Part {
	parts := []kube.Part{s.seen.Controller, s.seen.RestAPI, s.seen.LoginSet}
	if s.cluster.Spec.SlurmNodes.Accounting.Enabled {
		parts = append(parts, s.accountingPart())
	}
	parts = append(parts, s.workerParts()...)
	if !s.applied && len(s.problems) == 0 {
		parts = append(parts, kube.Part{Name: "component objects", Reason: nebiusv1.ReasonReconciling, Message: "could not all be applied, which is tried again"})
	}
	return parts
}

// spec writes the conditions about the spec itself.
func (s *status) spec() {
	switch mode := s.cluster.Spec.Maintenance; mode {
	case nebiusv1.MaintenanceDownscale:
		s.report.Say(nebiusv1.ConditionPopulateJailMode, metav1.ConditionUnknown, nebiusv1.ReasonUnknown, "the populate-jail Job is left alone")
	case "":
		s.report.Say(nebiusv1.ConditionPopulateJailMode, metav1.ConditionTrue, string(nebiusv1.MaintenanceNone), "")
	default:
		s.report.Say(nebiusv1.ConditionPopulateJailMode, metav1.ConditionTrue, string(mode), "")
	}
	const refs = nebiusv1.ConditionNodeSetRefsResolved
	switch {
	case s.cluster.Spec.PartitionConfiguration.ConfigType != nebiusv1.PartitionConfigStructured:
		s.report.Drop = append(s.report.Drop, refs)
	case len(s.composed.Unresolved) > 0:
		s.report.Say(refs, metav1.ConditionFalse, nebiusv1.ReasonNotResolved, strings.Join(s.composed.Unresolved, "; "))
	default:
		s.report.Say(refs, metav1.ConditionTrue, nebiusv1.ReasonResolved, "every partition has workers")
	}
}
