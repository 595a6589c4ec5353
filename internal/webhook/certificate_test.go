// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// authority is the CA by which the API server knows the webhook.
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
