// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// maxManifestBytes is how long a manifest or an index may be (OCI distribution specification).
	maxManifestBytes = 4 << 20
	// maxConfigBytes is how long the configuration of an image may be.
	maxConfigBytes = 8 << 20
	// maxLayers is how many layers an image may have. Overlays of Linux end at 500 as well.
	maxLayers = 500
	// maxIndexes is how many indexes may stand inside of each other.
	maxIndexes = 3
)

// digestPattern is what digests look like in manifests.
var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// descriptor names a blob or a manifest.
type descriptor struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    string          `json:"digest"`
	Size      int64           `json:"size"`
	URLs      []string        `json:"urls"`
	Platform  *Platform       `json:"platform"`
}

// document is a manifest or an index, of Docker or of OCI.
type document struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType"`
	Config        descriptor      `json:"config"`
	Layers        []descriptor    `json:"layers"`
	Manifests     []descriptor    `json:"manifests"`

	digest string
}

// isIndex reports whether the document is a list of manifests.
func (d document) isIndex() bool { return d.MediaType.IsIndex() }

// accepted returns the header that names the documents which are read.
func accepted() string {
	return strings.Join([]string{string(types.OCIImageIndex), string(types.OCIManifestSchema1), string(types.DockerManifestList),
		string(types.DockerManifestSchema2)}, ", ")
}

// document reads a manifest or an index. The identifier is a tag or a digest.
func (s *source) document(ctx context.Context, identifier string) (document, error) {
	text, contentType, err := s.fetch(ctx, "manifests", identifier, maxManifestBytes)
	if err != nil {
		return document{}, err
	}
	if digest := digestOf(text); strings.Contains(identifier, ":") && digest != identifier {
		return document{}, s.failure(Corrupt, nil, "%s sends another manifest for image %s than that of %s: tell the registry's administrator",
			s.host, s.image, identifier)
	}
	d, err := parseDocument(text, contentType)
	if err != nil {
		return document{}, s.failure(Corrupt, err, "%s sends a manifest for image %s that is no JSON of a manifest: check that it is a registry",
			s.host, s.image)
	}
	return d, s.checkDocument(d)
}

// parseDocument reads a document. Its own type counts, and then that of the answer. If neither is known, what it holds tells what it is.
func parseDocument(text []byte, contentType string) (document, error) {
	d := document{digest: digestOf(text)}
	if err := json.Unmarshal(text, &d); err != nil {
		return document{}, fmt.Errorf("reading a manifest: %w", err)
	}
	if d.MediaType == "" {
		mediaType, _, _ := mime.ParseMediaType(contentType)
		d.MediaType = types.MediaType(mediaType)
	}
	known := d.MediaType.IsIndex() || d.MediaType.IsImage() || d.MediaType.IsSchema1()
	switch {
	case known || d.SchemaVersion == 1:
	case len(d.Manifests) > 0:
		d.MediaType = types.OCIImageIndex
	default:
		d.MediaType = types.OCIManifestSchema1
	}
	return d, nil
}

// checkDocument returns what is wrong about a document.
func (s *source) checkDocument(d document) error {
	switch {
	case d.MediaType.IsSchema1() || d.SchemaVersion == 1:
		return s.failure(Unsupported, nil, "image %s at %s has a manifest of a Docker before 1.10: push it again with a newer one",
			s.image, s.host)
	case d.isIndex() && len(d.Layers) > 0, d.MediaType.IsImage() && len(d.Manifests) > 0:
		return s.failure(Corrupt, nil, "%s sends a document for image %s that is both a manifest and an index: build the image again",
			s.host, s.image)
	case d.isIndex():
		return s.checkDescriptors(d.Manifests)
	case !isImageConfig(d.Config.MediaType):
		return s.failure(Unsupported, nil, "%s at %s is no container image, but has the type %.80q: check its name",
			s.image, s.host, d.Config.MediaType)
	case len(d.Layers) > maxLayers:
		return s.failure(Unsupported, nil, "image %s at %s has %d layers, and %d are the limit: build it with fewer",
			s.image, s.host, len(d.Layers), maxLayers)
	case d.Config.Size > maxConfigBytes:
		return s.failure(Unsupported, nil, "image %s at %s has a configuration of %d bytes, and %d are the limit: build it with less",
			s.image, s.host, d.Config.Size, maxConfigBytes)
	}
	for _, layer := range d.Layers {
		if !isLayer(layer.MediaType) {
			return s.failure(Unsupported, nil,
				"image %s at %s has a layer of the type %.80q, which is not read: build it with layers of gzip or zstd",
				s.image, s.host, layer.MediaType)
		}
	}
	return s.checkDescriptors(append([]descriptor{d.Config}, d.Layers...))
}

// checkDescriptors returns what is wrong about digests and sizes.
func (s *source) checkDescriptors(list []descriptor) error {
	for _, d := range list {
		if !digestPattern.MatchString(d.Digest) || d.Size < 0 {
			return s.failure(Corrupt, nil, "%s sends a manifest for image %s with the digest %.80q and the size %d: build the image again", s.host,
				s.image, d.Digest, d.Size)
		}
	}
	return nil
}

// isImageConfig reports whether a type is that of an image's configuration. Other artifacts have others.
func isImageConfig(t types.MediaType) bool {
	return t == types.DockerConfigJSON || t == types.OCIConfigJSON
}

// isLayer reports whether a type is that of a layer: a tar archive, as it is or compressed with gzip or zstd. Encrypted ones are others.
// "Foreign" layers are read from the registry alone, and never from the URLs that a manifest has for them.
func isLayer(t types.MediaType) bool {
	switch t {
	case types.DockerLayer, types.DockerUncompressedLayer, types.DockerForeignLayer, "application/vnd.docker.image.rootfs.diff.tar.zstd",
		types.OCILayer, types.OCIUncompressedLayer, types.OCILayerZStd, types.OCIRestrictedLayer, types.OCIUncompressedRestrictedLayer,
		"application/vnd.oci.image.layer.nondistributable.v1.tar+zstd":
		return true
	}
	return false
}
