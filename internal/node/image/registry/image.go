// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
)

// Layer is a layer of an image, as the registry stores it.
type Layer struct {
	// MediaType tells how the tar archive is compressed. Registries are not always right about it.
	MediaType string
	// Digest is that of the compressed bytes.
	Digest string
	// Size is the number of the compressed bytes.
	Size int64
}

// Image is an image of a registry for one platform.
type Image struct {
	// Digest is that of the manifest for the platform, as "enroot digest" prints it.
	Digest string
	// Layers are the layers, the lowest first.
	Layers []Layer

	client *Client
	ref    reference.Reference
	login  Login
	config descriptor
	// source has answered with the manifest.
	source *source
	// platformKnown is true if an index has named the platform. Else the configuration does.
	platformKnown bool
}

// Resolve asks a registry which manifest an image has for the client's platform. It is always the registry, or a mirror, that answers:
// whoever gets an answer has proved that this login may read the image.
func (c *Client) Resolve(ctx context.Context, ref reference.Reference, login Login) (*Image, error) {
	if ref.IsPath() || ref.Local() || ref.Registry == "" {
		return nil, fmt.Errorf("resolving %s: it is not an image of a registry", ref.Name())
	}
	var image *Image
	err := c.each(ctx, ref.Registry, func(host string, patience http.RoundTripper) error {
		s, err := c.connect(ctx, host, ref, login, patience)
		if err != nil {
			return err
		}
		image, err = c.resolveAt(ctx, s, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	image.client, image.ref, image.login = c, ref, login
	return image, nil
}

// resolveAt reads the manifest at one host.
func (c *Client) resolveAt(ctx context.Context, s *source, ref reference.Reference) (*Image, error) {
	identifier := ref.Tag
	if ref.Digest != "" {
		identifier = ref.Digest
	}
	known := false
	for range maxIndexes + 1 {
		d, err := s.document(ctx, identifier)
		if err != nil {
			return nil, err
		}
		if !d.isIndex() {
			return newImage(s, d, known), nil
		}
		chosen, found := choose(d.Manifests, c.platform)
		if !found {
			return nil, s.failure(WrongPlatform, nil, "image %s at %s is for %s, and this node is %s: choose an image for this node",
				s.image, s.host, offered(d.Manifests), c.platform)
		}
		identifier, known = chosen.Digest, chosen.Platform != nil
	}
	return nil, s.failure(Corrupt, nil, "image %s at %s has more than %d indexes inside of each other: build it again",
		s.image, s.host, maxIndexes)
}

func newImage(s *source, d document, platformKnown bool) *Image {
	image := &Image{Digest: d.digest, config: d.Config, source: s, platformKnown: platformKnown}
	for _, layer := range d.Layers {
		image.Layers = append(image.Layers, Layer{MediaType: string(layer.MediaType), Digest: layer.Digest, Size: layer.Size})
	}
	return image
}

// ReadConfig returns the image's configuration, as JSON of OCI or Docker. An image for another platform is an error.
func (i *Image) ReadConfig(ctx context.Context) ([]byte, error) {
	var text []byte
	err := i.each(ctx, func(s *source) error {
		var err error
		if text, err = s.config(ctx, i.config); err != nil || i.platformKnown {
			return err
		}
		return i.client.checkPlatform(s, text)
	})
	return text, err
}

// checkPlatform refuses the configuration of an image that is for another platform. Old images name none.
func (c *Client) checkPlatform(s *source, config []byte) error {
	var has Platform
	if err := json.Unmarshal(config, &has); err != nil {
		return s.failure(Corrupt, err, "image %s at %s has a configuration that is no JSON: build it again", s.image, s.host)
	}
	if has.Architecture == "" {
		return nil
	}
	has.OS = cmp.Or(has.OS, c.platform.OS)
	if _, runs := choose([]descriptor{{Platform: &has}}, c.platform); !runs {
		return s.failure(WrongPlatform, nil, "image %s at %s is for %s, and this node is %s: choose an image for this node",
			s.image, s.host, has, c.platform)
	}
	return nil
}

// config reads a configuration.
func (s *source) config(ctx context.Context, d descriptor) ([]byte, error) {
	stream, err := s.open(ctx, Layer{Digest: d.Digest, Size: d.Size})
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	return io.ReadAll(stream)
}

// Open returns the compressed bytes of a layer. Reading ends with io.EOF only if they had the layer's digest and size; whoever uses them
// before believes the registry. A connection that breaks is made again. The context ends the stream.
func (i *Image) Open(ctx context.Context, layer Layer) (io.ReadCloser, error) {
	if !slices.Contains(i.Layers, layer) {
		return nil, fmt.Errorf("opening layer %s: image %s has no such layer", layer.Digest, i.ref.Name())
	}
	var stream io.ReadCloser
	err := i.each(ctx, func(s *source) error {
		var err error
		stream, err = s.open(ctx, layer)
		return err
	})
	if failed, is := errors.AsType[*Error](err); is && failed.Reason == NotFound {
		failed.message = fmt.Sprintf("%s has the manifest of image %s, but not its layer %s (404): push the image again",
			failed.Host, failed.Image, layer.Digest)
		if t := types.MediaType(layer.MediaType); !t.IsDistributable() {
			failed.message += " with its foreign layers"
		}
	}
	if err != nil {
		return nil, err
	}
	return stream, nil
}

// each calls do with the host that had the manifest, and then with the others that may have the image, until one succeeds. A mirror may
// have lost a layer.
func (i *Image) each(ctx context.Context, do func(*source) error) error {
	err := do(i.source)
	if err == nil || ctx.Err() != nil || i.source.host == i.ref.Registry {
		return err
	}
	i.client.mirrorFailed(i.source.host, err)
	return i.client.each(ctx, i.ref.Registry, func(host string, patience http.RoundTripper) error {
		if host == i.source.host {
			return err
		}
		s, err := i.client.connect(ctx, host, i.ref, i.login, patience)
		if err != nil {
			return err
		}
		return do(s)
	})
}
