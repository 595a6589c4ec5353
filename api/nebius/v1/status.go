// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SlurmClusterStatus is what is known of a SlurmCluster.
type SlurmClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase sums the conditions up: Pending, Reconciling, Not available or Available.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Conditions are the state of the cluster in detail.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// PopulatedJail is the volume for which condition JailPopulated was True last. Another volume does not count as filled.
	// +optional
	PopulatedJail *PopulatedJail `json:"populatedJail,omitempty"`

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

// PopulatedJail is a volume that has been filled.
type PopulatedJail struct {
	// Volume is a digest of the volume source.
	Volume string `json:"volume"`

	// ClaimUID is the UID of the PersistentVolumeClaim that the source names; empty for a source of another kind. A claim
	// that was deleted and made again under its name has another one.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`
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
	// ConditionPopulateJailMode shows by its reason what becomes of the populate-jail Job: the reason is a
	// MaintenanceMode.
	ConditionPopulateJailMode = "PopulateJailMode"
	// ConditionJailPopulated is True when the jail has been filled, and no run that overwrites it has been left unfinished, so that
	// login and worker pods may have it. Its reason is what the Job does now. There is no such condition without a jail.
	ConditionJailPopulated = "JailPopulated"
	// ConditionJailOverwritten is False from the beginning of a run that overwrites the jail until one is complete, and then True. The
	// next Job continues what is unfinished. There is no such condition of a jail that was never overwritten.
	ConditionJailOverwritten = "JailOverwritten"
	// ConditionImagesReplaced is True when the spec names images of Soperator, in whose place ours run. There is no such condition
	// otherwise.
	ConditionImagesReplaced = "ImagesReplaced"
	// ConditionControllersAvailable is True when slurmctld is available.
	ConditionControllersAvailable = "ControllersAvailable"
	// ConditionWorkersAvailable is True when all workers are available.
	ConditionWorkersAvailable = "WorkersAvailable"
	// ConditionLoginAvailable is True when all login pods are available.
	ConditionLoginAvailable = "LoginAvailable"
	// ConditionAccountingAvailable is True when slurmdbd and its database are available.
	ConditionAccountingAvailable = "AccountingAvailable"
	// ConditionSConfigControllerAvailable is True when the program runs that writes files of JailedConfigs into the jail.
	ConditionSConfigControllerAvailable = "SConfigControllerAvailable"
	// ConditionExporterAvailable is True when the exporter runs. It is there only if the spec asks for an exporter.
	ConditionExporterAvailable = "ExporterAvailable"
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
	// ReasonMaintenance goes with False of a component that is, or is to be, at rest. The message has how far it is. It also goes
	// with Ready: True when nothing runs any more.
	ReasonMaintenance = "Maintenance"
	// ReasonReconciling goes with Unknown, before the first pass, and with Reconciling True.
	ReasonReconciling = "Reconciling"
	// ReasonUnknown goes with Unknown of PopulateJailMode.
	ReasonUnknown = "Unknown"
	// ReasonSoperatorImages goes with ImagesReplaced True. The message has the fields and the images.
	ReasonSoperatorImages = "SoperatorImages"
	// ReasonPopulated goes with JailPopulated and JailOverwritten True: the Job is complete.
	ReasonPopulated = "Populated"
	// ReasonPopulating goes with JailPopulated: the Job is under way. The message has files, bytes and seconds.
	ReasonPopulating = "Populating"
	// ReasonPopulateFailed goes with JailPopulated: the Job has given up. The message has the end of its log, and the way out.
	ReasonPopulateFailed = "Failed"
	// ReasonUnfinished goes with JailOverwritten False.
	ReasonUnfinished = "Unfinished"
	// ReasonWaiting goes with JailPopulated and Ready: the message names what the Job, or a component, waits for.
	ReasonWaiting = "Waiting"
	// ReasonSkipped goes with JailPopulated when spec.maintenance is skipPopulateJail: with False while a Job fills the jail.
	ReasonSkipped = "Skipped"
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
