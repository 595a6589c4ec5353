// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"context"
	"crypto/tls"
	"crypto/x509"

	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

const (
	caPath     = "spec.storageConfig.tls.caRef"
	clientPath = "spec.storageConfig.tls.clientCertificateRef"
)

// certificateReferences returns the objects with certificates for the connection to the database.
func certificateReferences(a *slinkyv1beta1.Accounting) []string {
	if a.Spec.StorageConfig == nil || a.Spec.StorageConfig.TLS == nil {
		return nil
	}
	var refs []string
	t := a.Spec.StorageConfig.TLS
	if t.CARef.ConfigMapKeyRef != nil {
		refs = append(refs, reference.To("ConfigMap", t.CARef.ConfigMapKeyRef.Name))
	}
	if t.CARef.SecretKeyRef != nil {
		refs = append(refs, reference.To("Secret", t.CARef.SecretKeyRef.Name))
	}
	if t.ClientCertificateRef != nil {
		refs = append(refs, reference.To("Secret", t.ClientCertificateRef.Name))
	}
	return refs
}

// certificates reads the certificates, checks that they are certificates, and gives their digest to the pods.
func (r *reconciler) certificates(ctx context.Context, a *slinkyv1beta1.Accounting, in *slurmdbd.Input) error {
	if a.Spec.StorageConfig == nil || a.Spec.StorageConfig.TLS == nil {
		return nil
	}
	t := a.Spec.StorageConfig.TLS
	ca, err := r.authority(ctx, a.Namespace, t.CARef)
	if err != nil {
		return err
	}
	content := map[string][]byte{"ca": ca}
	if err := checkAuthority(ca); err != nil {
		return err
	}
	if ref := t.ClientCertificateRef; ref != nil {
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if content[key], err = r.SecretValue(ctx, a.Namespace, corev1.SecretKeySelector{LocalObjectReference: *ref, Key: key}, clientPath); err != nil {
				return err
			}
		}
		if _, err := tls.X509KeyPair(content[corev1.TLSCertKey], content[corev1.TLSPrivateKeyKey]); err != nil {
			return problem.Errorf(clientPath, slinkyv1beta1.ReasonInvalidSpec, "Secret %s holds no certificate with its key: %v", ref.Name, err)
		}
	}
	in.TLSDigest = label.Digest(content)
	return nil
}

func (r *reconciler) authority(ctx context.Context, namespace string, ref slinkyv1beta1.CertificateReference) ([]byte, error) {
	switch {
	case ref.SecretKeyRef != nil:
		return r.SecretValue(ctx, namespace, *ref.SecretKeyRef, caPath)
	case ref.ConfigMapKeyRef != nil:
		content, err := r.ConfigMap(ctx, namespace, ref.ConfigMapKeyRef.Name, caPath)
		if err != nil {
			return nil, err
		}
		text, ok := content[ref.ConfigMapKeyRef.Key]
		if !ok {
			return nil, problem.Waitingf(caPath, slinkyv1beta1.ReasonKeyMissing, "ConfigMap %s has no key %s", ref.ConfigMapKeyRef.Name, ref.ConfigMapKeyRef.Key)
		}
		return []byte(text), nil
	default:
		return nil, problem.Errorf(caPath, slinkyv1beta1.ReasonInvalidSpec, "give one of configMapKeyRef and secretKeyRef")
	}
}

func checkAuthority(pem []byte) error {
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return problem.Errorf(caPath, slinkyv1beta1.ReasonInvalidSpec, "it holds no certificate in PEM form")
	}
	return nil
}
