// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// Facts are what the status of a SlurmCluster is computed from.
type Facts struct {
	// Composed is what the spec asks for, with the problems of composing and of applying it.
	Composed compose.Output
	// Applied says that all of it is on the server.
	Applied bool
	Seen    Seen
	Now     time.Time
}

// Write computes the status of a cluster, all but the summary conditions, which it returns for kube.Report.
func (f Facts) Write(cluster *nebiusv1.SlurmCluster) kube.Summary {
	status := &cluster.Status
	w := writer{conditions: &status.Conditions, generation: cluster.Generation, now: f.Now}
	f.common(cluster, &w)
	f.components(cluster, &w)
	f.spec(cluster, &w)

	status.ObservedGeneration = cluster.Generation
	status.ReadyWorkers, status.ReadyLogin = new(f.Seen.ReadyWorkers), new(f.Seen.ReadyLogin)
	switch {
	case !f.Applied && (status.Phase == "" || status.Phase == nebiusv1.PhasePending):
		status.Phase = nebiusv1.PhasePending
	case w.available:
		status.Phase = nebiusv1.PhaseAvailable
	default:
		status.Phase = nebiusv1.PhaseNotAvailable
	}
	return kube.Summary{Generation: cluster.Generation, Now: f.Now, Parts: f.parts(cluster), Problems: f.Composed.Problems}
}

// writer writes the conditions of components, and remembers whether all that count are available.
type writer struct {
	conditions *[]metav1.Condition
	generation int64
	now        time.Time
	available  bool
}

func (w *writer) set(kind string, status metav1.ConditionStatus, reason, message string) {
	kube.SetCondition(w.conditions, metav1.Condition{
		Type: kind, Status: status, ObservedGeneration: w.generation, Reason: reason, Message: message,
	}, w.now)
}

// common writes the condition of what the operator itself puts in place.
func (f Facts) common(cluster *nebiusv1.SlurmCluster, w *writer) {
	const kind = nebiusv1.ConditionCommonAvailable
	w.available = len(f.Composed.Problems) == 0 && !cluster.Spec.Maintenance.Downscaled()
	switch {
	case len(f.Composed.Problems) > 0:
		// What is there goes on running as it was.
		w.set(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, "the spec cannot be put into effect, see condition Stalled")
	case cluster.Spec.Maintenance.Downscaled():
		w.set(kind, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "spec.maintenance is "+string(cluster.Spec.Maintenance))
	case f.Applied:
		w.set(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, "keys, configuration and component objects are in place")
	case meta.FindStatusCondition(*w.conditions, kind) == nil:
		w.set(kind, metav1.ConditionUnknown, nebiusv1.ReasonReconciling, "the first pass over the cluster is not complete")
	}
}

// components writes the condition of each component.
func (f Facts) components(cluster *nebiusv1.SlurmCluster, w *writer) {
	nodes, atRest := &cluster.Spec.SlurmNodes, cluster.Spec.Maintenance.Downscaled()
	w.component(nebiusv1.ConditionControllersAvailable, f.Seen.Controller)
	switch {
	case f.workers(cluster) == 0:
		w.set(nebiusv1.ConditionWorkersAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "the spec asks for no workers")
	case atRest:
		w.set(nebiusv1.ConditionWorkersAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "there are no workers during maintenance")
	default:
		w.component(nebiusv1.ConditionWorkersAvailable, f.workerParts()...)
	}
	switch {
	case nodes.Login.Size == 0:
		w.set(nebiusv1.ConditionLoginAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.slurmNodes.login.size is 0")
	case atRest:
		w.set(nebiusv1.ConditionLoginAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "there are no login pods during maintenance")
	default:
		w.component(nebiusv1.ConditionLoginAvailable, f.Seen.LoginSet)
	}
	if nodes.Accounting.Enabled {
		w.component(nebiusv1.ConditionAccountingAvailable, f.accountingPart())
	} else {
		w.set(nebiusv1.ConditionAccountingAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.slurmNodes.accounting.enabled is false")
	}
}

// component writes the condition of a component that the spec asks for.
func (w *writer) component(kind string, parts ...kube.Part) {
	var missing []string
	for _, p := range parts {
		if !p.Ready {
			missing = append(missing, p.Name+": "+p.Message)
		}
	}
	if len(missing) > 0 {
		w.available = false
		w.set(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, strings.Join(missing, "; "))
		return
	}
	messages := make([]string, 0, len(parts))
	for _, p := range parts {
		messages = append(messages, p.Name+": "+p.Message)
	}
	w.set(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, strings.Join(messages, "; "))
}

// workers is the number of workers that the spec asks for when it is not at rest.
func (f Facts) workers(cluster *nebiusv1.SlurmCluster) int {
	if cluster.Spec.Maintenance.Downscaled() {
		return len(f.Composed.Components.NodeSets)
	}
	total := 0
	for _, set := range f.Composed.Components.NodeSets {
		total += int(set.Replicas())
	}
	return total
}

// workerParts are the NodeSets, with the mistakes of those that are held.
func (f Facts) workerParts() []kube.Part {
	parts := slices.Clone(f.Seen.NodeSets)
	for i, set := range f.Composed.Components.NodeSets {
		for _, held := range f.Composed.Held {
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
func (f Facts) accountingPart() kube.Part {
	if f.Composed.Components.Accounting != nil {
		return f.Seen.Accounting
	}
	if len(f.Composed.Problems) > 0 {
		return kube.Part{Name: "spec.slurmNodes.accounting", Stalled: true, Reason: nebiusv1.ReasonInvalidSpec, Message: "has mistakes, see condition Stalled"}
	}
	return kube.Part{
		Name: "spec.slurmNodes.accounting.mariadbOperator", Stalled: true, Reason: nebiusv1.ReasonFieldsNotEffective,
		Message: "this version cannot use the mariadb-operator; use embeddedDB or externalDB",
	}
}

// parts are what the cluster is ready by. A part at rest is ready when it rests.
func (f Facts) parts(cluster *nebiusv1.SlurmCluster) []kube.Part {
	parts := []kube.Part{f.Seen.Controller, f.Seen.RestAPI, f.Seen.LoginSet}
	if cluster.Spec.SlurmNodes.Accounting.Enabled {
		parts = append(parts, f.accountingPart())
	}
	parts = append(parts, f.workerParts()...)
	if !f.Applied && len(f.Composed.Problems) == 0 {
		parts = append(parts, kube.Part{Name: "component objects", Reason: nebiusv1.ReasonReconciling, Message: "could not all be applied, which is tried again"})
	}
	return parts
}

// spec writes the conditions about the spec itself.
func (f Facts) spec(cluster *nebiusv1.SlurmCluster, w *writer) {
	switch mode := cluster.Spec.Maintenance; mode {
	case nebiusv1.MaintenanceDownscale:
		w.set(nebiusv1.ConditionPopulateJailMode, metav1.ConditionUnknown, nebiusv1.ReasonUnknown, "the populate-jail Job is left alone")
	case "":
		w.set(nebiusv1.ConditionPopulateJailMode, metav1.ConditionTrue, string(nebiusv1.MaintenanceNone), "")
	default:
		w.set(nebiusv1.ConditionPopulateJailMode, metav1.ConditionTrue, string(mode), "")
	}
	if all, message := compose.Effect(f.Composed.Ignored, f.Composed.Notes); all {
		w.set(nebiusv1.ConditionSpecEffective, metav1.ConditionTrue, nebiusv1.ReasonAllFieldsEffective, message)
	} else {
		w.set(nebiusv1.ConditionSpecEffective, metav1.ConditionFalse, nebiusv1.ReasonFieldsNotEffective, message)
	}
	const refs = nebiusv1.ConditionNodeSetRefsResolved
	switch {
	case cluster.Spec.PartitionConfiguration.ConfigType != nebiusv1.PartitionConfigStructured:
		meta.RemoveStatusCondition(w.conditions, refs)
	case len(f.Composed.Unresolved) > 0:
		w.set(refs, metav1.ConditionFalse, nebiusv1.ReasonNotResolved, strings.Join(f.Composed.Unresolved, "; "))
	default:
		w.set(refs, metav1.ConditionTrue, nebiusv1.ReasonResolved, "every partition has workers")
	}
}
