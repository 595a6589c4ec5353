// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeSetPowerState says which nodes of a NodeSet with ephemeral nodes are to run. It has the name of the NodeSet, which
// owns it. Slurm's power saving changes it. See https://slurm.schedmd.com/power_save.html
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

	// Spec says which nodes are to run.
	// +optional
	Spec NodeSetPowerStateSpec `json:"spec,omitzero"`

	// Status says which nodes run.
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

// NodeSetPowerStateSpec says which nodes are to run.
type NodeSetPowerStateSpec struct {
	// NodeSetRef is the name of the NodeSet.
	// +required
	// +kubebuilder:validation:MinLength=1
	NodeSetRef string `json:"nodeSetRef"`

	// ActiveNodes are the ordinals of the nodes that are to run.
	// +optional
	// +listType=set
	// +kubebuilder:validation:items:Minimum=0
	ActiveNodes []int32 `json:"activeNodes,omitempty"`
}

// NodeSetPowerStateStatus says which nodes run.
type NodeSetPowerStateStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ActiveCount is the number of ordinals in spec.activeNodes.
	// +optional
	ActiveCount int32 `json:"activeCount,omitempty"`

	// NodeStates are the nodes by ordinal.
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

// NodePowerState is one node of a NodeSet.
type NodePowerState struct {
	// Phase is the phase of the pod.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Unknown
	Phase string `json:"phase,omitempty"`

	// PodName is the name of the pod.
	// +optional
	PodName string `json:"podName,omitempty"`

	// SlurmState is the state of the Slurm node, such as IDLE+CLOUD.
	// +optional
	SlurmState string `json:"slurmState,omitempty"`

	// LastTransitionTime is when the phase last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`

	// Message says to a human what the node waits for.
	// +optional
	Message string `json:"message,omitempty"`
}
