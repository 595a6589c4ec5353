// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

// roundTripper answers requests in tests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is part of http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestTheLoginIsForTheFirstHostOfARedirect has the hosts to which Go's client forwards a login.
func TestTheLoginIsForTheFirstHostOfARedirect(t *testing.T) {
	for name, test := range map[string]struct {
		hosts []string
		want  string
	}{
		"no redirect":                    {[]string{"reg.test"}, "login"},
		"to the same host":               {[]string{"reg.test", "REG.test"}, "login"},
		"to a host below it":             {[]string{"reg.test", "evil.reg.test"}, ""},
		"to another port":                {[]string{"reg.test", "reg.test:8443"}, ""},
		"to another host and on from it": {[]string{"reg.test", "cdn.test", "cdn.test"}, ""},
		"to another host and back":       {[]string{"reg.test", "cdn.test", "reg.test"}, "login"},
	} {
		t.Run(name, func(t *testing.T) {
			var request *http.Request
			for _, host := range test.hosts {
				next := &http.Request{URL: &url.URL{Scheme: "https", Host: host}, Header: http.Header{"Authorization": {"login"}}}
				if request != nil {
					next.Response = &http.Response{Request: request}
				}
				request = next
			}
			got := "not asked"
			g := &guard{next: roundTripper(func(r *http.Request) (*http.Response, error) {
				got = r.Header.Get("Authorization")
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})}
			response, err := g.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil || got != test.want {
				t.Errorf("the host gets %q, %v", got, err)
			}
			if request.Header.Get("Authorization") != "login" {
				t.Error("the request itself was changed")
			}
		})
	}
}

func TestAProxyIsThatOfTheEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		variables map[string]string
		target    string
		want      string
	}{
		"nothing is set": {nil, "https://reg.test", ""},
		"https_proxy is for HTTPS": {
			map[string]string{"https_proxy": "http://p:1", "http_proxy": "http://q:1"}, "https://reg.test", "http://p:1",
		},
		"http_proxy is for HTTP": {
			map[string]string{"https_proxy": "http://p:1", "http_proxy": "http://q:1"}, "http://reg.test", "http://q:1",
		},
		"all_proxy is for the rest": {map[string]string{"all_proxy": "http://p:1"}, "https://reg.test", "http://p:1"},
		"upper case counts":         {map[string]string{"HTTPS_PROXY": "http://p:1"}, "https://reg.test", "http://p:1"},
		"lower case counts before it": {
			map[string]string{"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:1"}, "https://reg.test", "http://q:1",
		},
		"no_proxy has domains": {map[string]string{"https_proxy": "http://p:1", "no_proxy": ".test"}, "https://reg.test", ""},
		"no_proxy of another domain": {
			map[string]string{"https_proxy": "http://p:1", "NO_PROXY": ".site"}, "https://reg.test", "http://p:1",
		},
		"this machine is asked without it": {map[string]string{"https_proxy": "http://p:1"}, "https://localhost:5000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := url.Parse(test.target)
			if err != nil {
				t.Fatal(err)
			}
			lookup := credentials.Environment(func(name string) (string, bool) { value, set := test.variables[name]; return value, set })
			proxy, err := proxyOf(lookup)(&http.Request{URL: target})
			got := ""
			if proxy != nil {
				got = proxy.String()
			}
			if err != nil || got != test.want {
				t.Errorf("the proxy is %q, %v", got, err)
			}
		})
	}
}
