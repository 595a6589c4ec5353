// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "github.com/coxswain-hpc/coxswain/api/embedded"

// Metadata is what a user adds to the metadata of an object that the operator makes.
type Metadata struct {
	// Labels are added to the object. A label that the operator needs (app.kubernetes.io/name and its like) keeps the
	// operator's value.
	// More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are added to the object.
	// More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations
	// +optional
	// +nullable
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodTemplate is laid over the pod that the operator makes.
type PodTemplate struct {
	// Metadata is added to the metadata of the pods.
	// +optional
	Metadata Metadata `json:"metadata,omitzero"`

	// Spec is a core/v1 PodSpec, or a part of one. It is laid over the generated pod spec as a strategic merge patch:
	// lists of named things (containers, volumes, environment) merge by name, scalars replace. The API server does
	// not look inside; a mistyped field shows as condition Stalled, with its path.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodSpec
	// +optional
	Spec *embedded.PodSpec `json:"spec,omitempty"`
}

// ServiceSpec describes the Service in front of a component.
type ServiceSpec struct {
	// Metadata is added to the metadata of the Service.
	// +optional
	Metadata Metadata `json:"metadata,omitzero"`

	// Spec is a core/v1 ServiceSpec, or a part of one: type, loadBalancerClass, annotations of a cloud and so on.
	// Selector and ports are the operator's, and externalIPs are dropped (CVE-2020-8554). The API server does not look
	// inside; a mistyped field shows as condition Stalled, with its path.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/service-resources/service-v1/#ServiceSpec
	// +optional
	Spec *embedded.ServiceSpec `json:"spec,omitempty"`

	// Port is the TCP port of the Service. Default: the port of the component itself (slurmctld 6817, slurmdbd 6819,
	// slurmrestd 6820, ssh 22).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// NodePort is the port on every Kubernetes node when the Service is of type NodePort or LoadBalancer. Default:
	// one that Kubernetes chooses.
	// More info: https://kubernetes.io/docs/concepts/services-networking/service/#type-nodeport
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`
}

// ExternalConfig is where a component runs that the operator does not run itself.
type ExternalConfig struct {
	// Host is the host name or IP address of the component.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z._:-]*$')",message="must be one host name or IP address"
	Host string `json:"host"`

	// Port is the TCP port of the component.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
