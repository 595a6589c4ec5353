// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Conditions of every kind. They follow kstatus
// (https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus).
const (
	// ConditionReady is True when the object is in effect as the spec wants it.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator changes something.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when the operator cannot go on until somebody changes something.
	ConditionStalled = "Stalled"
)

// Reasons of those conditions.
const (
	// ReasonSucceeded goes with Ready True, and with Reconciling and Stalled False.
	ReasonSucceeded = "Succeeded"
	// ReasonReconciling goes with Reconciling True, and with Ready False meanwhile.
	ReasonReconciling = "Reconciling"
	// ReasonInvalidSpec goes with Stalled True: the message names the field and what to change.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotServed goes with Ready False and Stalled True of an object whose kind, or type of check, this version stores, and
	// nothing more.
	ReasonNotServed = "NotServed"
)

// Values of updateStatus.
const (
	UpdateStatusUpdating  = "updating"
	UpdateStatusFailed    = "failed"
	UpdateStatusSucceeded = "succeeded"
)

// StatusMetadata is what the status of ActiveChecks and NodeConfigurators have in common.
type StatusMetadata struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// UpdateStatus is updating, failed or succeeded.
	// +optional
	UpdateStatus string `json:"updateStatus,omitempty"`

	// Reason is the reason for updateStatus.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Conditions are the state of the object in detail.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is a metav1.Condition that also has the time when it was last written.
type Condition struct {
	// Type is the condition, such as Ready.
	// +required
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// Status is True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum="True";"False";Unknown
	Status metav1.ConditionStatus `json:"status"`

	// ObservedGeneration is the generation of the spec that the condition is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// LastTransitionTime is when the status last changed.
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// LastUpdateTime is when anything of the condition last changed. Default: lastTransitionTime.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`

	// Reason is the reason, in one word.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`

	// Message is the reason, as a text for people.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}
