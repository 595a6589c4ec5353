// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmdbd

import (
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// Names of the files in /etc/slurm with which slurmdbd connects to its database by TLS.
const (
	caFile         = "database-ca.crt"
	clientCertFile = "database-client.crt"
	clientKeyFile  = "database-client.key"
)

// tlsHash on slurmdbd's pod is a digest of the certificates for its database; other ones restart it.
const tlsHash = "coxswain.dev/database-tls-hash"

func storageTLS(a *slinkyv1beta1.Accounting) *slinkyv1beta1.StorageTLS {
	if a.Spec.EmbeddedDatabase != nil || a.Spec.StorageConfig == nil {
		return nil
	}
	return a.Spec.StorageConfig.TLS
}

// tlsParameters are the items of StorageParameters, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageParameters.
func tlsParameters(a *slinkyv1beta1.Accounting) []string {
	tls := storageTLS(a)
	if tls == nil {
		return nil
	}
	parameters := []string{"SSL_CA=" + pod.EtcSlurm + "/" + caFile}
	if tls.ClientCertificateRef != nil {
		parameters = append(parameters, "SSL_CERT="+pod.EtcSlurm+"/"+clientCertFile, "SSL_KEY="+pod.EtcSlurm+"/"+clientKeyFile)
	}
	return parameters
}

// certificates projects what tlsParameters name.
func certificates(a *slinkyv1beta1.Accounting) []corev1.VolumeProjection {
	tls := storageTLS(a)
	if tls == nil {
		return nil
	}
	var out []corev1.VolumeProjection
	switch ca := tls.CARef; {
	case ca.ConfigMapKeyRef != nil:
		out = append(out, pod.ConfigMapItem(*ca.ConfigMapKeyRef, caFile))
	case ca.SecretKeyRef != nil:
		out = append(out, pod.SecretItem(*ca.SecretKeyRef, caFile))
	}
	if ref := tls.ClientCertificateRef; ref != nil {
		out = append(out, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: *ref,
			Items:                []corev1.KeyToPath{{Key: corev1.TLSCertKey, Path: clientCertFile}, {Key: corev1.TLSPrivateKeyKey, Path: clientKeyFile}},
		}})
	}
	return out
}
