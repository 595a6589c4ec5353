// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

// Types of what a registry hands out.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerConfig   = "application/vnd.docker.container.image.v1+json"
	dockerLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	ociConfig      = "application/vnd.oci.image.config.v1+json"
	ociZstd        = "application/vnd.oci.image.layer.v1.tar+zstd"
)

// password is in no error.
const password = "s3cr3t"

// content is a blob or a manifest.
type content struct {
	mediaType string
	text      []byte
}

// object is JSON.
type object = map[string]any

// fake is a registry in memory that a test can break. It has what pkg/registry of go-containerregistry has not: logins and faults.
type fake struct {
	*httptest.Server
	// host is where it listens.
	host string

	lock sync.Mutex
	// contents has blobs and manifests by their paths.
	contents map[string]content
	// before answers a request itself if it returns true.
	before func(http.ResponseWriter, *http.Request) bool
	// seen has the requests as "METHOD PATH", and authorizations their headers of that name.
	seen, authorizations []string
}

// newFake starts a registry, with TLS or without.
func newFake(t *testing.T, secure bool) *fake {
	t.Helper()
	f := &fake{contents: map[string]content{}}
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(f.Close)
	f.host = f.Listener.Addr().String()
	return f
}

// ServeHTTP is part of http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.lock.Lock()
	f.seen = append(f.seen, r.Method+" "+r.URL.Path)
	f.authorizations = append(f.authorizations, r.Header.Get("Authorization"))
	before, found := f.before, f.contents[r.URL.Path]
	f.lock.Unlock()
	if before != nil && before(w, r) {
		return
	}
	switch {
	case r.URL.Path == "/v2/":
		w.WriteHeader(http.StatusOK)
	case found.text == nil:
		w.WriteHeader(http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", found.mediaType)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(found.text)))
	}
}

// requests returns the paths that were asked for.
func (f *fake) requests() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Clone(f.seen)
}

// logins returns the different headers of logins that came.
func (f *fake) logins() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	all := map[string]bool{}
	for _, one := range f.authorizations {
		all[one] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// digestOf returns the digest of a text.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// blob adds a blob, and returns how a manifest names it.
func (f *fake) blob(mediaType, text string) object {
	f.contents["/v2/team/app/blobs/"+digestOf([]byte(text))] = content{"application/octet-stream", []byte(text)}
	return object{"mediaType": mediaType, "digest": digestOf([]byte(text)), "size": len(text)}
}

// manifest adds a manifest under a tag and under its digest, and returns how an index names it.
func (f *fake) manifest(tag, mediaType string, body object) object {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return f.raw(tag, mediaType, string(text))
}

// raw adds a manifest as a text.
func (f *fake) raw(tag, mediaType, text string) object {
	digest := digestOf([]byte(text))
	for _, name := range []string{tag, digest} {
		f.contents["/v2/team/app/manifests/"+name] = content{mediaType, []byte(text)}
	}
	return object{"mediaType": mediaType, "digest": digest, "size": len(text)}
}

// image adds an image of one layer.
func (f *fake) image(tag, architecture, layer string) object {
	return f.manifest(tag, ociManifest, object{
		"schemaVersion": 2, "mediaType": ociManifest,
		"config": f.blob(ociConfig, `{"os":"linux","architecture":"`+architecture+`"}`),
		"layers": []object{f.blob(ociZstd, layer)},
	})
}

// on returns a descriptor with a platform.
func on(descriptor object, architecture, variant string) object {
	descriptor = maps.Clone(descriptor)
	descriptor["platform"] = object{"os": "linux", "architecture": architecture, "variant": variant}
	return descriptor
}

// reference returns an image of this registry.
func (f *fake) reference(t *testing.T, version string) reference.Reference {
	t.Helper()
	r, err := reference.Parse(f.host + "#team/app" + version)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// certificates returns a file with the certificate of a registry.
func (f *fake) certificates(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environment returns variables.
func environment(variables map[string]string) credentials.Environment {
	return func(name string) (string, bool) { value, set := variables[name]; return value, set }
}

// waits records how long a client would have waited.
type waits struct {
	lock sync.Mutex
	all  []time.Duration
}

// wait waits for no time.
func (w *waits) wait(ctx context.Context, d time.Duration) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.all = append(w.all, d)
	return ctx.Err()
}

// newClient returns a client for amd64 that does not wait.
func newClient(t *testing.T, o registry.Options) *registry.Client {
	t.Helper()
	if o.Platform == (registry.Platform{}) {
		o.Platform = registry.Platform{OS: "linux", Architecture: "amd64"}
	}
	if o.Wait == nil {
		o.Wait = new(waits).wait
	}
	c, err := registry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// clientOf returns a client that may ask registries by HTTP.
func clientOf(t *testing.T, registries ...*fake) *registry.Client {
	t.Helper()
	var hosts []string
	for _, f := range registries {
		hosts = append(hosts, f.host)
	}
	return insecureClient(t, hosts...)
}

// insecureClient returns a client that may ask hosts by HTTP.
func insecureClient(t *testing.T, hosts ...string) *registry.Client {
	t.Helper()
	return newClient(t, registry.Options{Insecure: hosts})
}

// pull reads all layers of an image, one after the other.
func pull(
	ctx context.Context, c *registry.Client, r reference.Reference, login registry.Login,
) (text string, image *registry.Image, err error) {
	image, err = c.Resolve(ctx, r, login)
	if err != nil {
		return "", nil, err
	}
	for _, layer := range image.Layers {
		stream, err := image.Open(ctx, layer)
		if err != nil {
			return text, image, err
		}
		part, err := io.ReadAll(stream)
		text += string(part)
		if err := stream.Close(); err != nil {
			return text, image, err
		}
		if err != nil {
			return text, image, err
		}
	}
	return text, image, nil
}

// alice logs in everywhere.
func alice(string, string) (credentials.Credentials, error) {
	return credentials.Credentials{User: "alice", Password: password}, nil
}

// wantError checks an error.
func wantError(t *testing.T, err error, reason registry.Reason, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	e, is := err.(*registry.Error) //nolint:errorlint // errors of the client are not wrapped
	if !is || e.Reason != reason {
		t.Errorf("the error is %T of another reason: %v", err, err)
	}
	for _, part := range append(parts, "team/app") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in the error %q", part, err)
		}
	}
	if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "alice") || strings.ContainsAny(err.Error(), "\n") {
		t.Errorf("the error shows a login, or has several lines: %v", err)
	}
}
