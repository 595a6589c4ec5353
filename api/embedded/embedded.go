// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embedded holds the Kubernetes core types that users write inside Coxswain's objects: a container, a pod
// spec, an affinity. They are kept exactly as written (raw JSON) for three reasons. The CRDs stay small enough for a
// plain "kubectl apply", since the schemas of the core types are not spelled out in them. One object with a mistyped
// field does not make the decoding of a whole list fail and blind the operator for all others. And a strategic merge
// patch over a generated object can be taken from them directly, with nulls and "$patch" directives intact.
//
// The price is that the API server checks nothing inside. Decode does: strictly, naming the path of what is wrong.
//
// +kubebuilder:object:generate=true
package embedded

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any JSON object, kept as written and not interpreted by Coxswain.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Object struct {
	runtime.RawExtension `json:",inline"`
}

// Container is a core/v1 Container, or a part of one.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Container struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the container. An unknown, repeated or mistyped field is an error that names its path.
func (c *Container) Decode() (*corev1.Container, error) { return decode[corev1.Container](c.raw()) }

// Read is Decode with the names of the fields that are written.
func (c *Container) Read() (Piece[corev1.Container], error) { return read[corev1.Container](c.raw()) }

func (c *Container) raw() []byte {
	if c == nil {
		return nil
	}
	return c.Raw
}

// PodSpec is a core/v1 PodSpec, or a part of one.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type PodSpec struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the pod spec. An unknown, repeated or mistyped field is an error that names its path.
func (p *PodSpec) Decode() (*corev1.PodSpec, error) { return decode[corev1.PodSpec](p.raw()) }

// Read is Decode with the names of the fields that are written.
func (p *PodSpec) Read() (Piece[corev1.PodSpec], error) { return read[corev1.PodSpec](p.raw()) }

func (p *PodSpec) raw() []byte {
	if p == nil {
		return nil
	}
	return p.Raw
}

// ServiceSpec is a core/v1 ServiceSpec, or a part of one.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type ServiceSpec struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the service spec. An unknown, repeated or mistyped field is an error that names its path.
func (s *ServiceSpec) Decode() (*corev1.ServiceSpec, error) {
	return decode[corev1.ServiceSpec](s.raw())
}

func (s *ServiceSpec) raw() []byte {
	if s == nil {
		return nil
	}
	return s.Raw
}

// PersistentVolumeClaim is a core/v1 PersistentVolumeClaim used as a template.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type PersistentVolumeClaim struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the claim. An unknown, repeated or mistyped field is an error that names its path.
func (p *PersistentVolumeClaim) Decode() (*corev1.PersistentVolumeClaim, error) {
	return decode[corev1.PersistentVolumeClaim](p.raw())
}

func (p *PersistentVolumeClaim) raw() []byte {
	if p == nil {
		return nil
	}
	return p.Raw
}

// PersistentVolumeClaimSpec is the core/v1 type of that name.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type PersistentVolumeClaimSpec struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the claim spec. An unknown, repeated or mistyped field is an error that names its path.
func (p *PersistentVolumeClaimSpec) Decode() (*corev1.PersistentVolumeClaimSpec, error) {
	return decode[corev1.PersistentVolumeClaimSpec](p.raw())
}

func (p *PersistentVolumeClaimSpec) raw() []byte {
	if p == nil {
		return nil
	}
	return p.Raw
}

// Affinity is a core/v1 Affinity.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Affinity struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the affinity. An unknown, repeated or mistyped field is an error that names its path.
func (a *Affinity) Decode() (*corev1.Affinity, error) { return decode[corev1.Affinity](a.raw()) }

func (a *Affinity) raw() []byte {
	if a == nil {
		return nil
	}
	return a.Raw
}

// VolumeSource is a core/v1 VolumeSource.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeSource struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the volume source. An unknown, repeated or mistyped field is an error that names its path.
func (v *VolumeSource) Decode() (*corev1.VolumeSource, error) {
	return decode[corev1.VolumeSource](v.raw())
}

func (v *VolumeSource) raw() []byte {
	if v == nil {
		return nil
	}
	return v.Raw
}

// Volume is a core/v1 Volume: a name and a volume source side by side.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Volume struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the volume. An unknown, repeated or mistyped field is an error that names its path.
func (v *Volume) Decode() (*corev1.Volume, error) { return decode[corev1.Volume](v.raw()) }

func (v *Volume) raw() []byte {
	if v == nil {
		return nil
	}
	return v.Raw
}

// VolumeMount is a core/v1 VolumeMount.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeMount struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the volume mount. An unknown, repeated or mistyped field is an error that names its path.
func (v *VolumeMount) Decode() (*corev1.VolumeMount, error) {
	return decode[corev1.VolumeMount](v.raw())
}

func (v *VolumeMount) raw() []byte {
	if v == nil {
		return nil
	}
	return v.Raw
}

// EnvVar is a core/v1 EnvVar.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type EnvVar struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the variable. An unknown, repeated or mistyped field is an error that names its path.
func (e *EnvVar) Decode() (*corev1.EnvVar, error) { return decode[corev1.EnvVar](e.raw()) }

func (e *EnvVar) raw() []byte {
	if e == nil {
		return nil
	}
	return e.Raw
}

// Probe is a core/v1 Probe.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type Probe struct {
	runtime.RawExtension `json:",inline"`
}

// Decode returns the probe. An unknown, repeated or mistyped field is an error that names its path.
func (p *Probe) Decode() (*corev1.Probe, error) { return decode[corev1.Probe](p.raw()) }

func (p *Probe) raw() []byte {
	if p == nil {
		return nil
	}
	return p.Raw
}
