// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestACertificateInPlaceOfAPassword(t *testing.T) {
	d := load(t)
	out := Cluster(d.cluster(t, `{slurmNodes: {accounting: {enabled: true, externalDB: {enabled: true, host: db, user: dbd,
		storageParameters: {SSL_CA: /x, SSL_CIPHER: AES256-SHA}, tls: {serverCASecretRef: ca, clientCertSecretRef: client}}}}}`))
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	accounting := out.Components.Accounting
	want := &slinkyv1beta1.StorageConfig{Host: "db", Port: 3306, Username: "dbd", TLS: &slinkyv1beta1.StorageTLS{
		CARef: slinkyv1beta1.CertificateReference{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}, Key: "ca.crt",
		}},
		ClientCertificateRef: &corev1.LocalObjectReference{Name: "client"},
	}}
	if diff := cmp.Diff(want, accounting.Spec.StorageConfig); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !accounting.ByCertificate() || accounting.DatabasePasswordRef() != nil {
		t.Error("the Accounting asks for a password")
	}
	if storage, ok := accounting.Database(); !ok || storage.PasswordKeyRef.Name != "" {
		t.Errorf("its database is %v, %v", storage, ok)
	}
	conf := accounting.Spec.ExtraConf
	if strings.Contains(conf, "SSL_CA") || !strings.Contains(conf, "SSL_CIPHER=AES256-SHA") {
		t.Errorf("extraConf is %s", conf)
	}
	if diff := cmp.Diff([]string{"spec.slurmNodes.accounting.externalDB.storageParameters[SSL_CA] (beside tls)"}, out.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	d.expectValid(t, out.Objects)
}
