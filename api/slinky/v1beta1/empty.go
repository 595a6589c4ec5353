// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// Programs with Go types write structures that nobody has filled in, such as {"name": "", "key": ""}. DropEmpty makes such
// an object the one that was meant. The operator does so with everything that it reads.

// DropEmpty removes references that name nothing and configurations without a host.
func (c *Controller) DropEmpty() {
	s := &c.Spec
	dropSecretRefs(&s.SlurmKeyRef, &s.JwtKeyRef, &s.JwtHs256KeyRef)
	dropConfigMapRef(&s.JwksKeyRef)
	if s.AccountingRef != nil && s.AccountingRef.Name == "" {
		s.AccountingRef = nil
	}
	dropExternal(&s.ExternalConfig)
}

// DropEmpty removes references that name nothing and configurations without a host.
func (a *Accounting) DropEmpty() {
	s := &a.Spec
	dropSecretRefs(&s.SlurmKeyRef, &s.JwtKeyRef, &s.JwtHs256KeyRef)
	dropConfigMapRef(&s.JwksKeyRef)
	dropExternal(&s.ExternalConfig)
	if s.EmbeddedDatabase != nil {
		dropSecretRefs(&s.EmbeddedDatabase.PasswordKeyRef)
	}
	if s.StorageConfig != nil && s.StorageConfig.Host == "" {
		s.StorageConfig = nil
	}
	if s.StorageConfig == nil || s.StorageConfig.TLS == nil {
		return
	}
	if ref := &s.StorageConfig.TLS.ClientCertificateRef; *ref != nil && (*ref).Name == "" {
		*ref = nil
	}
}

// DropEmpty removes references that name nothing, and an empty strategy.
func (l *LoginSet) DropEmpty() {
	s := &l.Spec
	dropSecretRefs(&s.SssdConfRef)
	dropConfigMapRef(&s.SshdConfigRef)
	if s.Strategy == nil {
		return
	}
	if rolling := s.Strategy.RollingUpdate; rolling != nil && rolling.MaxSurge == nil && rolling.MaxUnavailable == nil {
		s.Strategy.RollingUpdate = nil
	}
	if s.Strategy.Type == "" && s.Strategy.RollingUpdate == nil {
		s.Strategy = nil
	}
}

// DropEmpty removes references that name nothing.
func (n *NodeSet) DropEmpty() {
	dropSecretRefs(&n.Spec.SSH.SssdConfRef)
	dropConfigMapRef(&n.Spec.SSH.SshdConfigRef)
}

// DropEmpty removes references that name nothing.
func (t *Token) DropEmpty() {
	dropSecretRefs(&t.Spec.JwtKeyRef, &t.Spec.SecretRef)
	if t.Spec.JwtHs256KeyRef != nil && t.Spec.JwtHs256KeyRef.Name == "" {
		t.Spec.JwtHs256KeyRef = nil
	}
}

func dropSecretRefs(refs ...**corev1.SecretKeySelector) {
	for _, ref := range refs {
		if *ref != nil && (*ref).Name == "" {
			*ref = nil
		}
	}
}

func dropConfigMapRef(ref **corev1.ConfigMapKeySelector) {
	if *ref != nil && (*ref).Name == "" {
		*ref = nil
	}
}

func dropExternal(config **ExternalConfig) {
	if *config != nil && (*config).Host == "" {
		*config = nil
	}
}

// claimWithoutEmpty returns a claim without the fields that nobody has filled in, of which some are pointers to empty texts.
func claimWithoutEmpty(claim *corev1.PersistentVolumeClaimSpec) *corev1.PersistentVolumeClaimSpec {
	written := map[string]any{}
	text, err := json.Marshal(claim)
	if err == nil {
		err = json.Unmarshal(text, &written)
	}
	if err != nil {
		return claim // a claim that came from JSON can be written as such
	}
	embedded.WithoutEmpty[corev1.PersistentVolumeClaimSpec](written)
	out := &corev1.PersistentVolumeClaimSpec{}
	if text, err = json.Marshal(written); err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return claim
	}
	return out
}
