// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenSpec is what a user asks of a Token.
//
// +kubebuilder:validation:XValidation:rule=`self.?jwtKeyRef.name.orValue("") != "" || self.?jwtHs256KeyRef.name.orValue("") != ""`,message="jwtKeyRef must be set: the key of the Controller, which is jwt.key in Secret <name>-auth-jwt when the operator generated it"
// +kubebuilder:validation:XValidation:rule="self.username == oldSelf.username",message="username cannot be changed; make another Token"
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) == has(oldSelf.secretRef) && (!has(self.secretRef) || self.secretRef == oldSelf.secretRef)",message="secretRef cannot be changed; make another Token"
// +kubebuilder:validation:XValidation:rule="(has(self.secretRef) && size(self.secretRef.name) > 0) || self.username.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$')",message="secretRef.name must be set, because no Secret can be named after this username"
type TokenSpec struct {
	// JwtKeyRef selects the key that signs the token with HS256, the one of the Controller. When its Secret has
	// annotation coxswain.dev/jwt-key-id, it is an RSA private key in PEM and signs with RS256; the annotation is the kid
	// of its public half in the Controller's jwksKeyRef. It wins over jwtHs256KeyRef. It cannot be changed; the content
	// of the Secret may, and another token is issued then.
	// Slurm: AuthAltParameters=jwt_key=, https://slurm.schedmd.com/jwt.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="jwtKeyRef cannot be changed; make another Token"
	JwtKeyRef *corev1.SecretKeySelector `json:"jwtKeyRef,omitempty"`

	// JwtHs256KeyRef is the earlier name of jwtKeyRef.
	//
	// Deprecated: use jwtKeyRef.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="jwtHs256KeyRef cannot be changed; make another Token"
	JwtHs256KeyRef *JwtSecretKeySelector `json:"jwtHs256KeyRef,omitempty"`

	// Username is the Slurm user that the token is for. An empty name stands for nobody. root, slurm and numbers,
	// which Slurm takes for uids, are refused with a condition unless the Secret with the key has annotation
	// coxswain.dev/allow-privileged-tokens with value "true". It cannot be changed.
	// Slurm: claim sun, https://slurm.schedmd.com/jwt.html
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_$.@+-]*$')",message="must consist of letters, digits and the characters _ $ . @ + -"
	Username string `json:"username"`

	// Lifetime is the time from the issue of a token to its expiry, as a Go duration such as 15m or 24h, at most
	// 596523h (2^31 seconds). Default: 15m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(h|m|s|ms))+$') && (duration(self) == duration('0s') || duration(self) >= duration('1s')) && duration(self) <= duration('596523h')",message="must be a duration such as 90s, 15m or 1h30m, from 1s to 596523h"
	Lifetime *metav1.Duration `json:"lifetime,omitempty"`

	// Refresh replaces the token when four fifths of its lifetime are over. Without it the Secret is made immutable and
	// the token expires for good. Default: true.
	// +optional
	// +kubebuilder:default=true
	Refresh *bool `json:"refresh,omitempty"`

	// SecretRef names the Secret, and the key in it, for the token. Default: Secret
	// <name>-jwt-<username>, key SLURM_JWT. It cannot be changed.
	// +optional
	SecretRef *corev1.SecretKeySelector `json:"secretRef,omitempty"`
}

// TokenStatus is what the operator observes of a Token.
type TokenStatus struct {
	// ObservedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// IssuedAt is the time at which the token was issued.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// ExpiresAt is the time at which the token expires.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// Conditions are Ready, Reconciling, Stalled and FieldsIgnored.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Token is a JSON Web Token for a Slurm user, kept fresh in a Secret. Who may make Tokens in a namespace with a JWT key
// can act as any user of that Slurm cluster; as root and SlurmUser only where the Secret with the key allows it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=tokens;jwt
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="USER",type="string",JSONPath=".spec.username",description="The user that the token speaks for."
// +kubebuilder:printcolumn:name="IAT",type="date",JSONPath=".status.issuedAt",description="When the token was issued."
// +kubebuilder:printcolumn:name="EXPIRES",type="string",JSONPath=".status.expiresAt",description="When the token expires.",priority=1
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether the Secret holds a valid token."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="What to know about it.",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec must be given"
type Token struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is asked for.
	// +optional
	Spec TokenSpec `json:"spec,omitzero"`

	// Status is what is observed. The operator writes it.
	// +optional
	Status TokenStatus `json:"status,omitzero"`
}

// TokenList is a list of Tokens.
//
// +kubebuilder:object:root=true
type TokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Token `json:"items"`
}
