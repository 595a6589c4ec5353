// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

type asked func(*http.Request) (*http.Response, error)

// RoundTrip is part of http.RoundTripper.
func (f asked) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheWebhookAsksForItsOwnObjectsByName(t *testing.T) {
	c := Certificates{Secret: types.NamespacedName{Namespace: "sys", Name: "cert"}, Validating: "coxswain"}
	const configurations = "/apis/admissionregistration.k8s.io/v1/"
	for request, want := range map[string]string{
		"GET /api/v1/namespaces/sys/secrets?limit=500":                         "fieldSelector=metadata.name%3Dcert&limit=500",
		"GET /api/v1/namespaces/sys/secrets?watch=true":                        "fieldSelector=metadata.name%3Dcert&watch=true",
		"GET " + configurations + "validatingwebhookconfigurations?watch=true": "fieldSelector=metadata.name%3Dcoxswain&watch=true",
		"GET " + configurations + "mutatingwebhookconfigurations?watch=true":   "watch=true",
		"GET /api/v1/namespaces/sys/secrets/cert":                              "",
		"PUT /api/v1/namespaces/sys/secrets/cert":                              "",
	} {
		var got string
		sent := named{names: c.names(), next: asked(func(r *http.Request) (*http.Response, error) {
			got = r.URL.RawQuery
			return httptest.NewRecorder().Result(), nil
		})}
		method, target := request[:3], request[4:]
		response, err := sent.RoundTrip(httptest.NewRequest(method, target, nil))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got != want {
			t.Errorf("%s asks for %q, want %q", request, got, want)
		}
	}
}
