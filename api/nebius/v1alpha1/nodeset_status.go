// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeSetStatus is what is known of the workers.
type NodeSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase sums the conditions up. Default: Pending.
	// +optional
	// +kubebuilder:default=Pending
	Phase NodeSetPhase `json:"phase,omitempty"`

	// Replicas is the number of ready workers.
	// +required
	Replicas int32 `json:"replicas"`

	// LabelSelector selects the pods, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// Conditions are the state of the workers in detail.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeSetPhase sums up how the workers are.
type NodeSetPhase string

// Phases of a NodeSet.
const (
	// NodeSetPending is the phase before the first pass is complete.
	NodeSetPending NodeSetPhase = "Pending"
	// NodeSetConfiguring is kept for readers of the first generation and is not set.
	NodeSetConfiguring NodeSetPhase = "Configuring"
	// NodeSetProvisioning is the phase while workers are missing.
	NodeSetProvisioning NodeSetPhase = "Provisioning"
	// NodeSetReady is the phase when all workers are ready.
	NodeSetReady NodeSetPhase = "Ready"
	// NodeSetDegraded is kept for readers of the first generation and is not set.
	NodeSetDegraded NodeSetPhase = "Degraded"
	// NodeSetTerminating is the phase while the SlurmCluster is at rest.
	NodeSetTerminating NodeSetPhase = "Terminating"
)

// Conditions of a NodeSet, beside those that every kind has.
const (
	// ConditionConfigUpdated is True when Slurm's configuration knows the nodes.
	ConditionConfigUpdated = "ConfigUpdated"
	// ConditionConfigDynamicUpdated is True when the nodes of all workers carry nodeConfig.dynamic.
	ConditionConfigDynamicUpdated = "ConfigDynamicUpdated"
	// ConditionStatefulSetUpdated is True when all workers are of the current revision.
	ConditionStatefulSetUpdated = "StatefulSetUpdated"
	// ConditionPodsReady is True when all workers are ready.
	ConditionPodsReady = "PodsReady"
	// ConditionStatefulSetTerminated is True when the workers are scaled to zero for maintenance.
	ConditionStatefulSetTerminated = "StatefulSetTerminated"
)

// Reasons of the conditions of a NodeSet.
const (
	// ReasonNodeSetReady goes with PodsReady True.
	ReasonNodeSetReady = "NodeSetReady"
	// ReasonNodeSetNotReady goes with PodsReady False.
	ReasonNodeSetNotReady = "NodeSetNotReady"
	// ReasonMaintenance goes with StatefulSetTerminated True.
	ReasonMaintenance = "Maintenance"
	// ReasonWorkersEnabled goes with StatefulSetTerminated False.
	ReasonWorkersEnabled = "WorkersEnabled"
	// ReasonSetUpCondition goes with Unknown, before the first pass.
	ReasonSetUpCondition = "SetUpCondition"
)
