// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// outage is the time for which the database is gone.
const outage = time.Minute

// slurmdbd uses a database that is not the operator's, by TLS. While it is gone jobs run, and afterwards they are accounted.
func TestDatabase(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	s.createSecret(t, "maria", map[string]string{"password": newKey(t)})
	s.createSecret(t, "maria-tls", serverCertificate(t, "maria"))
	m := s.components(t, "database.yaml")
	accounting, err := m.Only("Accounting")
	if err != nil {
		t.Fatal(err)
	}
	s.awaitCondition(t, soon, accounting, "DatabaseReachable", metav1.ConditionTrue)
	bob := s.enterLoginSet(t, "login", "bob")
	bob.seesAccounted(t, bob.completes(t))

	slurmctld, slurmdbd := s.pod(t, "slurm-controller-0"), s.pod(t, "slurm-accounting-0")
	gone := time.Now()
	s.scale(t, "maria", 0)
	during := []int{bob.completes(t)}
	s.awaitCondition(t, soon, accounting, "DatabaseReachable", metav1.ConditionFalse)
	t.Logf("DatabaseReachable was False %s after the database was sent away", time.Since(gone).Round(time.Second))
	for time.Since(gone) < outage {
		during = append(during, bob.completes(t))
	}
	s.scale(t, "maria", 1)
	s.awaitCondition(t, patient, accounting, "DatabaseReachable", metav1.ConditionTrue)
	back := time.Now()
	for _, job := range during {
		bob.seesAccounted(t, job)
	}
	t.Logf("the database was gone for %s, in which %d jobs ran; slurmdbd had all of them %s after it was back",
		back.Sub(gone).Round(time.Second), len(during), time.Since(back).Round(time.Second))
	if s.pod(t, slurmctld.Name).UID != slurmctld.UID || s.pod(t, slurmdbd.Name).UID != slurmdbd.UID {
		t.Error("slurmctld or slurmdbd was replaced")
	}
	for _, c := range s.pod(t, slurmdbd.Name).Status.ContainerStatuses {
		if c.RestartCount > 0 {
			t.Errorf("container %s of slurmdbd was restarted", c.Name)
		}
	}
}

// completes runs a job without output and returns its number.
func (u *user) completes(t *testing.T) int {
	t.Helper()
	job := u.submits(t, "hostname\n", "--chdir=/tmp", "--output=/dev/null")
	u.awaits(t, job, "COMPLETED")
	return job
}

// scale sets the replicas of a StatefulSet.
func (s *scene) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	var set appsv1.StatefulSet
	if err := s.Get(t.Context(), s.name(name), &set); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(set.DeepCopy())
	set.Spec.Replicas = &replicas
	if err := s.Patch(t.Context(), &set, patch); err != nil {
		t.Fatal(err)
	}
}

// serverCertificate returns a new authority, and a certificate with its key that it has signed for a host.
func serverCertificate(t *testing.T, host string) map[string]string {
	t.Helper()
	newPrivate := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	sign := func(template, parent *x509.Certificate, public *ecdsa.PublicKey, private *ecdsa.PrivateKey) string {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, public, private)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + t.Name()}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, serverKey := newPrivate(), newPrivate()
	der, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"ca.crt":  sign(ca, ca, &caKey.PublicKey, caKey),
		"tls.crt": sign(server, ca, &serverKey.PublicKey, caKey),
		"tls.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
}
