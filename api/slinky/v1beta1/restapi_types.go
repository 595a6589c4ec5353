// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// RestApiSpec is what a user asks of a RestApi.
type RestApiSpec struct { //nolint:revive // The kind is spelled so in the API.
	// ControllerRef names the Controller whose REST API this is. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="controllerRef cannot be changed; make another RestApi"
	ControllerRef ObjectReference `json:"controllerRef"`

	// Replicas is the number of slurmrestd pods. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Slurmrestd is the container of slurmrestd: a core/v1 Container, or a part of one, laid over the generated one as
	// a strategic merge patch. The API server does not look inside; a mistyped field shows as condition Stalled, with
	// its path. Default image: the operator's.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	Slurmrestd *embedded.Container `json:"slurmrestd,omitempty"`

	// Template is laid over the slurmrestd pods.
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// Service describes the Service of slurmrestd.
	// +optional
	Service ServiceSpec `json:"service,omitzero"`

	// NetworkPolicy restricts who may connect to slurmrestd.
	// +optional
	// +kubebuilder:default={}
	NetworkPolicy RestApiNetworkPolicy `json:"networkPolicy,omitzero"`
}

// RestApiNetworkPolicy describes the NetworkPolicy of slurmrestd. It admits, to slurmrestd's port and no other, pods with
// the label coxswain.dev/slurmrestd-client=true: those of the RestApi's own namespace, those of the operator's, and those
// of namespaces that have this label themselves. It needs a network plugin that enforces policies.
type RestApiNetworkPolicy struct { //nolint:revive // The kind is spelled so in the API.
	// Enabled is false to make none, so that every pod may connect. Callers need a token in any case. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// From admits further peers, such as an ipBlock of clients outside of the cluster that come in by a NodePort or a
	// LoadBalancer. Default: none.
	// More info: https://kubernetes.io/docs/concepts/services-networking/network-policies/
	// +optional
	// +listType=atomic
	From []networkingv1.NetworkPolicyPeer `json:"from,omitempty"`
}

// RestApiStatus is what the operator observes of a RestApi.
type RestApiStatus struct { //nolint:revive // The kind is spelled so in the API.
	// ObservedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is the number of slurmrestd pods.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is the number of slurmrestd pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Conditions are Ready, Reconciling, Stalled and FieldsIgnored.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RestApi is slurmrestd: the REST API of one Slurm cluster. The operator itself talks to Slurm through it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=slurmrestd
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether slurmrestd is up."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="REPLICAS",type="integer",JSONPath=".status.replicas",description="The current number of pods."
// +kubebuilder:printcolumn:name="CONTROLLER",type="string",JSONPath=".spec.controllerRef.name",description="The Controller whose REST API this is.",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="What to know about it.",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,52}[a-z0-9])?$')",message="metadata.name must begin with a letter, consist of lower-case letters, digits and '-', and have at most 54 characters: it becomes part of a host name"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec must be given"
type RestApi struct { //nolint:revive // The kind is spelled so in the API.
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is asked for.
	// +optional
	Spec RestApiSpec `json:"spec,omitzero"`

	// Status is what is observed. The operator writes it.
	// +optional
	Status RestApiStatus `json:"status,omitzero"`
}

// RestApiList is a list of RestApis.
//
// +kubebuilder:object:root=true
type RestApiList struct { //nolint:revive // The kind is spelled so in the API.
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RestApi `json:"items"`
}
