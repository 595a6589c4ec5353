// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Image is a container image.
type Image struct {
	// Repository is the image without its tag, such as registry.example.org/slurmd.
	// +required
	Repository string `json:"repository"`

	// Tag is the tag of the image. Default: the one that the registry takes for granted, latest.
	// +optional
	Tag string `json:"tag,omitempty"`

	// PullPolicy controls when the image is pulled. Default: IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum="";Always;Never;IfNotPresent
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
}

// Reference returns the image as containers name it, or nothing if no image is given.
func (i Image) Reference() string {
	if i.Repository == "" || i.Tag == "" {
		return i.Repository
	}
	return i.Repository + ":" + i.Tag
}

// ContainerSecurity are the limits of a container.
type ContainerSecurity struct {
	// LimitsConfig is the text of /etc/security/limits.conf, which PAM reads when sshd opens a session, in workers with a jail. slurmd
	// raises its own limits as far as it may, and its jobs have these. Default: no limits of its own.
	// See https://man7.org/linux/man-pages/man5/limits.conf.5.html
	// +optional
	LimitsConfig string `json:"limitsConfig,omitempty"`

	// AppArmorProfile is unconfined, runtime/default or localhost/<profile>. Default: unconfined.
	// +optional
	// +kubebuilder:default=unconfined
	AppArmorProfile string `json:"appArmorProfile,omitempty"`

	// ProcMount is the kind of /proc of the container. Default: the one of the component.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Default', 'Unmasked']",message="must be Default or Unmasked"
	ProcMount corev1.ProcMountType `json:"procMount,omitempty"`
}
