// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// Keys in the Secrets that the operator generates.
const (
	// SlurmKeyName is the auth/slurm key in Secret <name>-auth-slurm.
	SlurmKeyName = "slurm.key"
	// SlurmKeySetName is the set of auth/slurm keys in the Secret with the auth/slurm key, in which case that is not used.
	SlurmKeySetName = "slurm.jwks"
	// JwtKeyName is the JWT signing key in Secret <name>-auth-jwt.
	JwtKeyName = "jwt.key"
	// DatabasePasswordName is the password in Secret <name>-auth-database.
	DatabasePasswordName = "password"
	// TokenKeyName is the token in the Secret of a Token.
	TokenKeyName = "SLURM_JWT"
)

// AuthSlurmRef returns where the auth/slurm key of the cluster is: where the spec names it, or where the operator generates
// it.
func (c *Controller) AuthSlurmRef() *corev1.SecretKeySelector {
	return firstSelector(c.Name+"-auth-slurm", SlurmKeyName, c.Spec.SlurmKeyRef)
}

// AuthJwtRef returns where the JWT key of the cluster is: where the spec names it, or where the operator generates it.
func (c *Controller) AuthJwtRef() *corev1.SecretKeySelector {
	return firstSelector(c.Name+"-auth-jwt", JwtKeyName, c.Spec.JwtKeyRef, c.Spec.JwtHs256KeyRef)
}

// AuthJwtPath returns the field that AuthJwtRef comes from, or the one in which another Secret could be named.
func (c *Controller) AuthJwtPath() string {
	return jwtPath(c.Spec.JwtKeyRef, c.Spec.JwtHs256KeyRef != nil)
}

// GeneratesSlurmKey reports whether the operator has to generate the auth/slurm key.
func (c *Controller) GeneratesSlurmKey() bool {
	return !c.Spec.External && c.Spec.SlurmKeyRef == nil
}

// GeneratesJwtKey reports whether the operator has to generate the JWT key.
func (c *Controller) GeneratesJwtKey() bool {
	return !c.Spec.External && c.Spec.JwtKeyRef == nil && c.Spec.JwtHs256KeyRef == nil
}

// AuthSlurmRef returns where slurmdbd's auth/slurm key is: where the spec names it, or where the operator generates it.
func (a *Accounting) AuthSlurmRef() *corev1.SecretKeySelector {
	return firstSelector(a.Name+"-auth-slurm", SlurmKeyName, a.Spec.SlurmKeyRef)
}

// AuthJwtRef returns where slurmdbd's JWT key is: where the spec names it, or where the operator generates it.
func (a *Accounting) AuthJwtRef() *corev1.SecretKeySelector {
	return firstSelector(a.Name+"-auth-jwt", JwtKeyName, a.Spec.JwtKeyRef, a.Spec.JwtHs256KeyRef)
}

// AuthJwtPath returns the field that AuthJwtRef comes from, or the one in which another Secret could be named.
func (a *Accounting) AuthJwtPath() string {
	return jwtPath(a.Spec.JwtKeyRef, a.Spec.JwtHs256KeyRef != nil)
}

// GeneratesSlurmKey reports whether the operator has to generate the auth/slurm key.
func (a *Accounting) GeneratesSlurmKey() bool {
	return !a.Spec.External && a.Spec.SlurmKeyRef == nil
}

// GeneratesJwtKey reports whether the operator has to generate the JWT key.
func (a *Accounting) GeneratesJwtKey() bool {
	return !a.Spec.External && a.Spec.JwtKeyRef == nil && a.Spec.JwtHs256KeyRef == nil
}

// DatabasePasswordRef returns where the password of the database is: where the spec names it, or where the operator
// generates it for the embedded database. It is nil when the spec has no database, as with an external slurmdbd, and
// with a certificate in place of a password.
func (a *Accounting) DatabasePasswordRef() *corev1.SecretKeySelector {
	switch {
	case a.Spec.EmbeddedDatabase != nil:
		return firstSelector(a.Name+"-auth-database", DatabasePasswordName, a.Spec.EmbeddedDatabase.PasswordKeyRef)
	case a.Spec.StorageConfig != nil && !a.ByCertificate():
		return a.Spec.StorageConfig.PasswordKeyRef.DeepCopy()
	default:
		return nil
	}
}

// ByCertificate reports whether slurmdbd logs in to its database by a client certificate alone, without a password.
func (a *Accounting) ByCertificate() bool {
	s := a.Spec.StorageConfig
	return a.Spec.EmbeddedDatabase == nil && s != nil && s.PasswordKeyRef.Name == "" && s.TLS != nil && s.TLS.ClientCertificateRef != nil
}

// AuthJwtRef returns where the key is that signs the token. It is nil when the spec names none, which the API server
// refuses.
func (t *Token) AuthJwtRef() *corev1.SecretKeySelector {
	switch {
	case t.Spec.JwtKeyRef != nil:
		return t.Spec.JwtKeyRef.DeepCopy()
	case t.Spec.JwtHs256KeyRef != nil:
		return t.Spec.JwtHs256KeyRef.SecretKeySelector.DeepCopy()
	default:
		return nil
	}
}

// AuthJwtPath returns the field that AuthJwtRef comes from, or the one in which the key should be named.
func (t *Token) AuthJwtPath() string { return jwtPath(t.Spec.JwtKeyRef, t.Spec.JwtHs256KeyRef != nil) }

// AuthJwtInNamespace returns nil unless the deprecated reference to the key names another namespace; the error names what
// to write instead.
func (t *Token) AuthJwtInNamespace() error {
	if t.Spec.JwtKeyRef != nil || t.Spec.JwtHs256KeyRef == nil {
		return nil
	}
	return t.Spec.JwtHs256KeyRef.InNamespace(t.Namespace)
}

// TokenRef returns where the token is put.
func (t *Token) TokenRef() *corev1.SecretKeySelector {
	name, key := t.Name+"-jwt-"+t.User(), TokenKeyName
	if ref := t.Spec.SecretRef; ref != nil {
		if ref.Name != "" {
			name = ref.Name
		}
		if ref.Key != "" {
			key = ref.Key
		}
	}
	return selector(name, key)
}

// User returns the Slurm user that the token is for.
func (t *Token) User() string {
	if t.Spec.Username == "" {
		return "nobody"
	}
	return t.Spec.Username
}

// jwtPath returns the field that names the JWT key: the deprecated one only where it counts.
func jwtPath(ref *corev1.SecretKeySelector, deprecated bool) string {
	if ref == nil && deprecated {
		return "spec.jwtHs256KeyRef"
	}
	return "spec.jwtKeyRef"
}

// firstSelector returns a copy of the first reference that is there, or else one to the Secret of the given name.
func firstSelector(name, key string, refs ...*corev1.SecretKeySelector) *corev1.SecretKeySelector {
	for _, ref := range refs {
		if ref != nil {
			return ref.DeepCopy()
		}
	}
	return selector(name, key)
}

func selector(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}
