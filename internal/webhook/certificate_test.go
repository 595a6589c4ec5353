// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// authority returns the CA by which the API server knows the webhook.
func (s *scene) authority() []byte {
	s.t.Helper()
	var c admissionv1.ValidatingWebhookConfiguration
	must(s.t, s.user.Get(s.t.Context(), client.ObjectKey{Name: s.name}, &c))
	return c.Webhooks[0].ClientConfig.CABundle
}

func TestACertificateThatIsLostIsMadeAnewAndServed(t *testing.T) {
	t.Parallel()
	s := start(t)
	before := s.authority()
	if len(before) == 0 {
		t.Fatal("the API server was told no authority")
	}
	var secret corev1.Secret
	must(t, s.user.Get(t.Context(), s.secret, &secret))
	secret.Data = nil
	must(t, s.user.Update(t.Context(), &secret))
	apiserver.Eventually(t, func() error {
		if bytes.Equal(s.authority(), before) {
			return errors.New("the authority is the old one")
		}
		return nil
	})
	s.called()
}

func TestAConfigurationThatIsMadeAnewLearnsTheAuthority(t *testing.T) {
	t.Parallel()
	s := start(t)
	var c admissionv1.ValidatingWebhookConfiguration
	must(t, s.user.Get(t.Context(), client.ObjectKey{Name: s.name}, &c))
	for i := range c.Webhooks {
		c.Webhooks[i].ClientConfig.CABundle = nil
	}
	must(t, s.user.Update(t.Context(), &c))
	apiserver.Eventually(t, func() error {
		if len(s.authority()) == 0 {
			return errors.New("there is no authority")
		}
		return nil
	})
	s.called()
}

func TestACertificateIsRenewedBeforeItEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	var secret corev1.Secret
	must(t, s.user.Get(t.Context(), s.secret, &secret))
	authority, soon := secret.Data["ca.crt"], endsIn(t, secret.Data, 30*24*time.Hour)
	maps.Copy(secret.Data, soon)
	must(t, s.user.Update(t.Context(), &secret))
	apiserver.Eventually(t, func() error {
		must(t, s.user.Get(t.Context(), s.secret, &secret))
		certificate, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			return err
		}
		if left := time.Until(certificate.Leaf.NotAfter); left < 300*24*time.Hour {
			return fmt.Errorf("it ends in %s", left)
		}
		return nil
	})
	if !bytes.Equal(secret.Data["ca.crt"], authority) {
		t.Error("its authority was made anew, too, which the API server has to learn")
	}
	s.called()
}

// endsIn returns a certificate like the one in a Secret, signed by the same authority, that ends after d.
func endsIn(t *testing.T, data map[string][]byte, d time.Duration) map[string][]byte {
	t.Helper()
	authority, err := tls.X509KeyPair(data["ca.crt"], data["ca.key"])
	must(t, err)
	like, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	must(t, err)
	template := *like.Leaf
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(d)
	key, ok := like.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		t.Fatalf("the key is %T", like.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, authority.Leaf, key.Public(), authority.PrivateKey)
	must(t, err)
	return map[string][]byte{"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}
