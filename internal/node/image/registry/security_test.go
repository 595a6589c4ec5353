// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

// basic is the header of alice's login.
var basic = "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:"+password))

// protect makes a registry want a login, by itself or with a token. Its token is "token".
func protect(f *fake, bearer bool) {
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		header := r.Header.Get("Authorization")
		switch {
		case !bearer && header == basic, bearer && header == "Bearer token":
			return false
		case r.URL.Path == "/token" && header == basic && r.URL.Query().Get("scope") == "repository:team/app:pull":
			_ = json.NewEncoder(w).Encode(object{"token": "token"})
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":"%s\nis wrong"}]}`, password)
		case bearer:
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+f.URL+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
		return true
	}
}

func TestAPrivateImageWantsALogin(t *testing.T) {
	mallory := func(string, string) (credentials.Credentials, error) {
		return credentials.Credentials{User: "alice", Password: password + "?"}, nil
	}
	helped := func(string, string) (credentials.Credentials, error) {
		return credentials.Credentials{Hint: "a helper is not run"}, nil
	}
	for kind, bearer := range map[string]bool{"by itself": false, "with a token": true} {
		for name, test := range map[string]struct {
			login registry.Login
			want  string
		}{
			"with the login": {login: alice},
			"with a wrong login": {
				login: mallory, want: "or has no such image (401): check its name, and the entry of 127.0.0.1 in ~/.config/enroot/.credentials",
			},
			"without a login": {
				want: `(401): check its name, or add "machine 127.0.0.1 login USER password PASSWORD" to ~/.config/enroot/.credentials`,
			},
			"with a helper's hint": {login: helped, want: ".credentials; a helper is not run"},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				f := newFake(t, false)
				f.image("1", "amd64", "layer")
				protect(f, bearer)
				text, _, err := pull(t.Context(), clientOf(t, f), f.reference(t, ":1"), test.login)
				if test.want != "" {
					wantError(t, err, registry.Unauthorized, test.want, f.host)
					return
				}
				if err != nil || text != "layer" {
					t.Errorf("%q is read, %v", text, err)
				}
			})
		}
	}
}

func TestALoginThatIsNotFoundIsAnError(t *testing.T) {
	f := newFake(t, false)
	broken := errors.New("the file is broken")
	_, err := clientOf(t, f).Resolve(t.Context(), f.reference(t, ":1"), func(host, repository string) (credentials.Credentials, error) {
		return credentials.Credentials{}, fmt.Errorf("%s %s: %w", host, repository, broken)
	})
	want := "finding the login for " + f.host + ": " + f.host + " team/app: the file is broken"
	if !errors.Is(err, broken) || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	if len(f.requests()) != 0 {
		t.Errorf("the registry was asked for %v", f.requests())
	}
}

func TestAnImageThatOthersMayReadIsDenied(t *testing.T) {
	f := newFake(t, false)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	_, err := clientOf(t, f).Resolve(t.Context(), f.reference(t, ":1"), alice)
	wantError(t, err, registry.Denied, "does not let this login read image", "(403): ask its owner for access")
	_, err = clientOf(t, f).Resolve(t.Context(), f.reference(t, ":1"), nil)
	wantError(t, err, registry.Unauthorized, "wants a login for image", "or has no such image (403)")
}

func TestAnotherHostGetsNoLogin(t *testing.T) {
	for kind, bearer := range map[string]bool{"by itself": false, "with a token": true} {
		t.Run(kind, func(t *testing.T) {
			f, storage := newFake(t, false), newFake(t, false)
			f.image("1", "amd64", layerText)
			storage.contents = f.contents
			protect(f, bearer)
			login := f.before
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if login(w, r) {
					return true
				}
				if strings.Contains(r.URL.Path, "/blobs/") {
					http.Redirect(w, r, storage.URL+r.URL.Path+"?signature="+password, http.StatusTemporaryRedirect)
					return true
				}
				return false
			}
			// The storage breaks once, so that the redirect is followed again with a range.
			var n atomic.Int32
			storage.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == layerPath && n.Add(1) == 1 {
					cut(w, 0, 1000)
				}
				return false
			}
			c := clientOf(t, f, storage)
			text, _, err := pull(t.Context(), c, f.reference(t, ":1"), alice)
			if err != nil || text != layerText {
				t.Errorf("%d bytes are read, %v", len(text), err)
			}
			if diff := cmp.Diff([]string{""}, storage.logins()); diff != "" {
				t.Errorf("the storage got a login (-want +got):\n%s", diff)
			}

			storage.Close()
			_, _, err = pull(t.Context(), c, f.reference(t, ":1"), alice)
			wantError(t, err, registry.Unreachable, storage.host+" does not answer")
		})
	}
}

func TestARedirectIsNotFollowedToHTTP(t *testing.T) {
	f, storage := newFake(t, true), newFake(t, false)
	f.image("1", "amd64", "layer")
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, storage.URL+r.URL.Path, http.StatusFound)
			return true
		}
		return false
	}
	c := newClient(t, registry.Options{Environment: environment(map[string]string{"SSL_CERT_FILE": f.certificates(t)})})
	_, _, err := pull(t.Context(), c, f.reference(t, ":1"), nil)
	wantError(t, err, registry.Refused, storage.host+" is not asked for image",
		"it is asked by HTTP, and the administrator has not listed it as insecure")
	if len(storage.requests()) != 0 {
		t.Errorf("the storage was asked for %v", storage.requests())
	}
}

func TestARedirectThatGoesInACircleEnds(t *testing.T) {
	f := newFake(t, false)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}
		return false
	}
	_, err := clientOf(t, f).Resolve(t.Context(), f.reference(t, ":1"), nil)
	wantError(t, err, registry.Refused, "more than 10 redirects lead to it")
}

func TestHTTPIsForListedRegistriesAlone(t *testing.T) {
	f := newFake(t, false)
	f.image("1", "amd64", "layer")
	_, err := newClient(t, registry.Options{}).Resolve(t.Context(), f.reference(t, ":1"), alice)
	wantError(t, err, registry.Untrusted, "speaks HTTP and not HTTPS for image", "the administrator may list it as insecure")
	if len(f.requests()) != 0 {
		t.Errorf("the registry was asked for %v", f.requests())
	}
}

func TestCertificatesOfAnEnvironmentAreTrusted(t *testing.T) {
	f := newFake(t, true)
	f.image("1", "amd64", "layer")
	file := f.certificates(t)
	_, err := newClient(t, registry.Options{}).Resolve(t.Context(), f.reference(t, ":1"), nil)
	wantError(t, err, registry.Untrusted, "the certificate of "+f.host+" for image",
		"since its authority is unknown: put the authority's certificate into SSL_CERT_DIR")
	for _, variables := range []map[string]string{{"SSL_CERT_FILE": file}, {"SSL_CERT_DIR": "/nowhere:" + filepath.Dir(file)}} {
		c := newClient(t, registry.Options{Environment: environment(variables)})
		if text, _, err := pull(t.Context(), c, f.reference(t, ":1"), nil); err != nil || text != "layer" {
			t.Errorf("with %v, %q is read, %v", variables, text, err)
		}
	}
	wrong, err := reference.Parse(strings.Replace(f.host, "127.0.0.1", "localhost", 1) + "#team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, registry.Options{Environment: environment(map[string]string{"SSL_CERT_FILE": file})})
	_, err = c.Resolve(t.Context(), wrong, nil)
	wantError(t, err, registry.Untrusted, "since it is not for the name localhost: check the name of the registry")
	for variable, path := range map[string]string{"SSL_CERT_FILE": "/nowhere", "SSL_CERT_DIR": file} {
		_, err := registry.New(registry.Options{Environment: environment(map[string]string{variable: path})})
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s gives %v", variable, path, err)
		}
	}
}

func TestAProxyIsAsked(t *testing.T) {
	f := newFake(t, false)
	f.image("1", "amd64", "layer")
	target, err := url.Parse(f.URL)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		asked.Add(1)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	r, err := reference.Parse("registry.test:5000#team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, registry.Options{
		Insecure:    []string{"registry.test:5000"},
		Environment: environment(map[string]string{"ALL_PROXY": proxy.URL, "no_proxy": "other.test"}),
	})
	if text, _, err := pull(t.Context(), c, r, nil); err != nil || text != "layer" || asked.Load() < 3 {
		t.Errorf("%q is read, the proxy was asked %d times, %v", text, asked.Load(), err)
	}
	proxy.Close()
	_, _, err = pull(t.Context(), c, r, nil)
	wantError(t, err, registry.Unreachable, "the proxy to registry.test:5000 for image", "check the variables http_proxy and https_proxy")
}

func TestAnAnswerWithoutEndIsLeft(t *testing.T) {
	f := newFake(t, false)
	f.image("1", "amd64", "layer")
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		for r.URL.Path == "/v2/" && r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return true
			}
		}
		return false
	}
	if text, _, err := pull(t.Context(), clientOf(t, f), f.reference(t, ":1"), nil); err != nil || text != "layer" {
		t.Errorf("%q is read, %v", text, err)
	}
}
