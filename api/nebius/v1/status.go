// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SlurmClusterStatus is what is known of a SlurmCluster.
type SlurmClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase sums the conditions up: Pending, Reconciling, Not available or Available.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Conditions say in detail how the cluster is.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ReadyWorkers is the number of ready workers, those of NodeSets of the cluster included.
	// +optional
	ReadyWorkers *int32 `json:"readyWorkers,omitempty"`

	// ReadyLogin is the number of ready login pods.
	// +optional
	ReadyLogin *int32 `json:"readyLogin,omitempty"`

	// ReadySConfigController is the number of ready pods of the config writer.
	// +optional
	ReadySConfigController *int32 `json:"readySConfigController,omitempty"`
}

// Phase sums up how a SlurmCluster is.
type Phase string

// Phases of a SlurmCluster.
const (
	// PhasePending is the phase before the first pass over the cluster is complete.
	PhasePending Phase = "Pending"
	// PhaseReconciling is kept for readers of the first generation and is not set: status does not flap.
	PhaseReconciling Phase = "Reconciling"
	// PhaseNotAvailable is the phase of a cluster of which some component is not available.
	PhaseNotAvailable Phase = "Not available"
	// PhaseAvailable is the phase of a cluster all of whose components are available.
	PhaseAvailable Phase = "Available"
)

// Conditions that every SlurmCluster has. Ready, Reconciling and Stalled follow kstatus
// (https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus).
const (
	// ConditionReady is True when the whole cluster is as the spec wants it.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator changes something.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when the operator cannot go on until somebody changes something.
	ConditionStalled = "Stalled"
	// ConditionSpecEffective is False when fields are set that have no effect in this version of the operator. The
	// message lists their paths.
	ConditionSpecEffective = "SpecEffective"
	// ConditionNodeSetRefsResolved is False when a partition names a NodeSet that does not exist or has no nodes.
	ConditionNodeSetRefsResolved = "NodeSetRefsResolved"
)

// Conditions of the components. They are Unknown only until the first pass over the cluster.
const (
	// ConditionCommonAvailable is True when keys and configuration are in place.
	ConditionCommonAvailable = "CommonAvailable"
	// ConditionPopulateJailMode says by its reason what becomes of the populate-jail Job: the reason is a
	// MaintenanceMode.
	ConditionPopulateJailMode = "PopulateJailMode"
	// ConditionControllersAvailable is True when slurmctld is available.
	ConditionControllersAvailable = "ControllersAvailable"
	// ConditionWorkersAvailable is True when all workers are available.
	ConditionWorkersAvailable = "WorkersAvailable"
	// ConditionLoginAvailable is True when all login pods are available.
	ConditionLoginAvailable = "LoginAvailable"
	// ConditionAccountingAvailable is True when slurmdbd and its database are available.
	ConditionAccountingAvailable = "AccountingAvailable"
)

// Reasons of conditions.
const (
	// ReasonAvailable goes with True of a component.
	ReasonAvailable = "Available"
	// ReasonNotAvailable goes with False of a component that should be available.
	ReasonNotAvailable = "NotAvailable"
	// ReasonDisabled goes with False of a component that the spec does not ask for. It does not make the cluster not
	// available.
	ReasonDisabled = "Disabled"
	// ReasonMaintenance goes with False of a component at rest.
	ReasonMaintenance = "Maintenance"
	// ReasonReconciling goes with Unknown, before the first pass, and with Reconciling True.
	ReasonReconciling = "Reconciling"
	// ReasonUnknown goes with Unknown of PopulateJailMode.
	ReasonUnknown = "Unknown"
	// ReasonSucceeded goes with Ready True, and with Reconciling and Stalled False.
	ReasonSucceeded = "Succeeded"
	// ReasonInvalidSpec goes with Stalled True: the message names the field and what to change.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonFieldsNotEffective goes with SpecEffective False.
	ReasonFieldsNotEffective = "FieldsNotEffective"
	// ReasonAllFieldsEffective goes with SpecEffective True.
	ReasonAllFieldsEffective = "AllFieldsEffective"
	// ReasonResolved goes with NodeSetRefsResolved True.
	ReasonResolved = "Resolved"
	// ReasonNotResolved goes with NodeSetRefsResolved False. The message lists partitions and NodeSets.
	ReasonNotResolved = "NotResolved"
)
