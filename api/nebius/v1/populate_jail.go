// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import corev1 "k8s.io/api/core/v1"

// PopulateJail is the Job that fills the jail volume with a root file system.
type PopulateJail struct {
	// Image holds the packed root file system. Default: the operator's populate-jail image.
	// +optional
	Image string `json:"image,omitempty"`

	// ImagePullPolicy controls when the image is pulled. Default: IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum="";Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are Secrets for pulling the image.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// AppArmorProfile is unconfined, runtime/default or localhost/<profile>. Default: unconfined.
	// +optional
	// +kubebuilder:default=unconfined
	AppArmorProfile string `json:"appArmorProfile,omitempty"`

	// HostUsers false runs the pod in a user namespace of its own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// K8sNodeFilterName is the entry of spec.k8sNodeFilters that places the pod. Default: no constraint.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	K8sNodeFilterName string `json:"k8sNodeFilterName,omitempty"`

	// PriorityClass is the name of the pod's PriorityClass.
	// +optional
	PriorityClass string `json:"priorityClass,omitempty"`

	// JailSnapshotVolume holds a root file system to use instead of the image's; it is mounted at /jail. Default: none.
	// +optional
	JailSnapshotVolume *NodeVolume `json:"jailSnapshotVolume,omitempty"`

	// Overwrite fills the jail anew even if it already holds a root file system. Default: false.
	// +optional
	// +kubebuilder:default=false
	Overwrite bool `json:"overwrite,omitempty"`
}
