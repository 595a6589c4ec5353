// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imageregistry gives tests a registry of container images, with images that they describe by files.
package imageregistry

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry is a registry that listens on this machine, without TLS.
type Registry struct {
	// Host is where it listens.
	Host string

	lock   sync.Mutex
	before func(http.ResponseWriter, *http.Request) bool
	seen   []string
}

// Start starts a registry, which ends with the test.
func Start(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.lock.Lock()
		r.seen = append(r.seen, request.Method+" "+request.URL.Path)
		before := r.before
		r.lock.Unlock()
		if before == nil || !before(w, request) {
			images.ServeHTTP(w, request)
		}
	}))
	t.Cleanup(server.Close)
	r.Host = server.Listener.Addr().String()
	return r
}

// Before has a function see requests first. It returns true for one that it has answered; nil ends that.
func (r *Registry) Before(f func(http.ResponseWriter, *http.Request) bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.before = f
}

// Requests counts the requests whose method and path have a text: "GET /v2/team/app/blobs/sha256:…".
func (r *Registry) Requests(text string) int {
	r.lock.Lock()
	defer r.lock.Unlock()
	n := 0
	for _, one := range r.seen {
		if strings.Contains(one, text) {
			n++
		}
	}
	return n
}

// Layer makes an archive of files, paths and their contents.
func Layer(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	archive := tar.NewWriter(&b)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Push adds an image as TAG, "team/app:1", with layers, the lowest first. It returns the digest of the manifest, and those of the layers.
func (r *Registry) Push(t testing.TB, tag string, config v1.Config, layers ...[]byte) (digest string, blobs []string) {
	t.Helper()
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		one := static.NewLayer(layer, types.OCIUncompressedLayer)
		if image, err = mutate.AppendLayers(image, one); err != nil {
			t.Fatal(err)
		}
		hash, err := one.Digest()
		if err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, hash.String())
	}
	to, err := name.NewTag(r.Host + "/" + tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, image); err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String(), blobs
}
