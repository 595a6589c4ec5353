// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ObjectReference names an object in the namespace of the object that holds the reference.
//
// +structType=atomic
type ObjectReference struct {
	// Namespace of the referenced object. It may be left out; if it is given, it must be the namespace of the object
	// that holds the reference. Another one is refused with a condition, since a reference across namespaces would
	// let its author use what he may not read.
	//
	// Deprecated: leave it out.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the referenced object.
	// More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names
	// +optional
	// +kubebuilder:default=""
	Name string `json:"name"`
}

// InNamespace returns nil when the reference stays in namespace, the namespace of the object that holds it. The error
// names what to write instead.
func (r ObjectReference) InNamespace(namespace string) error {
	return sameNamespace(r.Namespace, r.Name, namespace)
}

// JwtSecretKeySelector selects a key of a Secret. It is the core type with a namespace, which the first release had.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || size(self.key) == 0",message="name must not be empty"
type JwtSecretKeySelector struct {
	corev1.SecretKeySelector `json:",inline"`

	// Namespace of the Secret. It may be left out; if it is given, it must be the namespace of the Token. Another one
	// is refused with a condition.
	//
	// Deprecated: leave it out.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// InNamespace returns nil when the reference stays in namespace, the namespace of the object that holds it. The error
// names what to write instead.
func (s JwtSecretKeySelector) InNamespace(namespace string) error {
	return sameNamespace(s.Namespace, s.Name, namespace)
}

func sameNamespace(given, name, own string) error {
	if given == "" || given == own {
		return nil
	}
	return fmt.Errorf("namespace %q of the reference to %q is not %q, the object's own: "+
		"leave it out and refer to an object in %q", given, name, own, own)
}
