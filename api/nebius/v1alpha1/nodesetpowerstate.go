// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationActiveNodes on a NodeSetPowerState are the ordinals that the operator has shown in spec.activeNodes, as "0,1,7". What
// spec.activeNodes has in addition, or lacks, is a request of a user.
const AnnotationActiveNodes = "coxswain.dev/active-nodes"

// NodeSetPowerState shows which nodes of a NodeSet with ephemeral nodes are to run, and takes requests to change that. It has the name of
// the NodeSet, which owns it. The operator makes it. See https://slurm.schedmd.com/power_save.html
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="NodeSet",type=string,JSONPath=`.spec.nodeSetRef`,description="The NodeSet"
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.activeCount`,description="Number of active nodes"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`,description="Whether the active nodes are ready"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeSetPowerState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines which nodes are to run.
	// +optional
	Spec NodeSetPowerStateSpec `json:"spec,omitzero"`

	// Status shows which nodes run.
	// +optional
	Status NodeSetPowerStateStatus `json:"status,omitzero"`
}

// NodeSetPowerStateList is a list of NodeSetPowerStates.
//
// +kubebuilder:object:root=true
type NodeSetPowerStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeSetPowerState `json:"items"`
}

// NodeSetPowerStateSpec defines which nodes are to run.
type NodeSetPowerStateSpec struct {
	// NodeSetRef is the name of the NodeSet.
	// +required
	// +kubebuilder:validation:MinLength=1
	NodeSetRef string `json:"nodeSetRef"`

	// ActiveNodes are the ordinals of the nodes that are to run. The operator keeps them as Slurm has them: without those that Slurm has
	// powered down, or is to when their jobs have ended. An ordinal that a user adds is a request to Slurm to power the node up, and one
	// that a user removes to power it down; no job is ended for that. See state in https://slurm.schedmd.com/scontrol.html
	// +optional
	// +listType=set
	// +kubebuilder:validation:items:Minimum=0
	ActiveNodes []int32 `json:"activeNodes,omitempty"`
}

// NodeSetPowerStateStatus shows which nodes run.
type NodeSetPowerStateStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ActiveCount is the number of ordinals in spec.activeNodes.
	// +optional
	ActiveCount int32 `json:"activeCount,omitempty"`

	// NodeStates are the nodes that are to run or have a pod, by ordinal. Of more than 1000, those that are ready are left out first.
	// +optional
	NodeStates map[string]NodePowerState `json:"nodeStates,omitempty"`

	// Conditions are Ready and ScalingInProgress.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionScalingInProgress is True while nodes are powered up or down.
const ConditionScalingInProgress = "ScalingInProgress"

// Reasons of the conditions of a NodeSetPowerState.
const (
	// ReasonPowerChanges goes with ScalingInProgress True.
	ReasonPowerChanges = "PowerChanges"
	// ReasonNotEphemeral goes with Stalled: the NodeSet has no ephemeral nodes.
	ReasonNotEphemeral = "NotEphemeral"
)

// NodePowerState is one node of a NodeSet.
type NodePowerState struct {
	// Phase is the phase of the pod; Pending while there is none.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Unknown
	Phase string `json:"phase,omitempty"`

	// PodName is the name of the pod.
	// +optional
	PodName string `json:"podName,omitempty"`

	// SlurmState is the state of the Slurm node without the effects of its jobs: CLOUD of a node in service, DOWN+CLOUD,
	// CLOUD+POWERING_UP. It is empty while Slurm does not have the node. See https://slurm.schedmd.com/sinfo.html
	// +optional
	SlurmState string `json:"slurmState,omitempty"`

	// LastTransitionTime is when the phase last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// Message is what the node waits for; empty when it is ready.
	// +optional
	Message string `json:"message,omitempty"`
}
