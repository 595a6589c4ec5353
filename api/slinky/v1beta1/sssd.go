// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// SSSD runs SSSD beside the daemon of a pod, as a sidecar, so that the daemon knows the users and the groups of a directory. SSSD runs as
// root, without any capability.
// More info: https://sssd.io/
type SSSD struct {
	// Container is SSSD: a core/v1 Container, or a part of one, laid over the generated one as a strategic merge patch. The API server
	// does not look inside; a mistyped field shows as condition Stalled, with its path. Its variable SSSD_OPTIONS has options of sssd.
	// Default image: that of login pods; another one needs sssd, tini and a shell.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	Container *embedded.Container `json:"container,omitempty"`

	// ConfRef selects the sssd.conf in a Secret. Another content makes new pods, and so do other certificates.
	// More info: https://manpages.debian.org/testing/sssd-common/sssd.conf.5.en.html
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 && size(self.key) > 0",message="name and key must not be empty"
	ConfRef corev1.SecretKeySelector `json:"confRef"`

	// AuthoritiesRef is a ConfigMap with certificate authorities in PEM, one or several under any keys, by which SSSD trusts LDAP servers.
	// They are also files in /etc/ldap/ca, for an sssd.conf that names one as ldap_tls_cacert. Default: those of the image.
	// +optional
	AuthoritiesRef *corev1.LocalObjectReference `json:"authoritiesRef,omitempty"`
}

// Authorities returns the name of the ConfigMap with certificate authorities; empty for none.
func (s *SSSD) Authorities() string {
	if s == nil || s.AuthoritiesRef == nil {
		return ""
	}
	return s.AuthoritiesRef.Name
}
