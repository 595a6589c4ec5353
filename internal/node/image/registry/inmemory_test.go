// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
)

func TestAnImageOfAnotherRegistryProgramIsRead(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	pushed, err := random.Image(100_000, 3)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(host + "/team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, pushed); err != nil {
		t.Fatal(err)
	}
	r, err := reference.Parse(host + "#team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	text, image, err := pull(t.Context(), insecureClient(t, host), r, nil)
	want, _ := pushed.Digest()
	if err != nil || image.Digest != want.String() || len(image.Layers) != 3 || len(text) < 300_000 {
		t.Errorf("%d bytes of %+v are read, %v", len(text), image, err)
	}
}
