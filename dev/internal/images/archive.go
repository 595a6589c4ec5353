// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images makes, reads and imports archives of container images.
package images

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// archiveEntry is an element of manifest.json in an archive of "docker save".
type archiveEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Image is an image in an archive.
type Image struct {
	// Reference is name and tag as containerd spells them.
	Reference string `json:"reference"`
	// Config is the digest of the image's configuration, which changes with
	// any of its content.
	Config string `json:"config"`
}

// Read lists the images of a docker-archive.
func Read(path string) ([]Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the image archive: %w", err)
	}
	defer func() { _ = f.Close() }()
	images, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("reading the image archive %s: %w", path, err)
	}
	return images, nil
}

const wanted = `want an uncompressed archive of "docker save" or "buildah push … docker-archive:FILE"`

// maxManifest bounds what is read into memory of a file that may be anything.
const maxManifest = 4 << 20

func read(r io.ReadSeeker) ([]Image, error) {
	// Seeking over the layers is what makes this fast: tar.Reader does so for
	// an io.Seeker.
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("no manifest.json in it: %s", wanted)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, wanted)
		}
		if header.Name != "manifest.json" {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(archive, maxManifest))
		if err != nil {
			return nil, err
		}
		return parseManifest(b)
	}
}

func parseManifest(b []byte) ([]Image, error) {
	var entries []archiveEntry
	if err := json.Unmarshal(b, &entries); err != nil {
		return nil, fmt.Errorf("parsing manifest.json: %w", err)
	}
	var images []Image
	for _, e := range entries {
		if len(e.RepoTags) == 0 {
			return nil, errors.New("an image has no name: give it a tag when it is saved")
		}
		for _, tag := range e.RepoTags {
			images = append(images, Image{Reference: normalize(tag), Config: filepath.Base(e.Config)})
		}
	}
	if len(images) == 0 {
		return nil, errors.New("it holds no image")
	}
	return images, nil
}

// normalize spells a short image name in full, as containerd and the kubelet do.
func normalize(reference string) string {
	domain, _, hasDomain := strings.Cut(reference, "/")
	if !hasDomain {
		reference = "docker.io/library/" + reference
	} else if !strings.ContainsAny(domain, ".:") && domain != "localhost" {
		reference = "docker.io/" + reference
	}
	if name := reference[strings.LastIndex(reference, "/")+1:]; !strings.Contains(name, ":") {
		reference += ":latest"
	}
	return reference
}

// WriteProgram writes a docker-archive of an image that consists of one static
// program and nothing else.
func WriteProgram(path, reference, program string) error {
	layer, err := programLayer(program)
	if err != nil {
		return fmt.Errorf("making the image %s: %w", reference, err)
	}
	layerDigest := digest(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + filepath.Base(program)}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layerDigest}},
	})
	if err != nil {
		return fmt.Errorf("making the image %s: %w", reference, err)
	}
	configName := digest(config) + ".json"
	manifest, err := json.Marshal([]archiveEntry{{Config: configName, RepoTags: []string{reference}, Layers: []string{layerDigest + ".tar"}}})
	if err != nil {
		return fmt.Errorf("making the image %s: %w", reference, err)
	}
	if err := writeArchive(path, []archiveFile{
		{"manifest.json", manifest},
		{configName, config},
		{layerDigest + ".tar", layer},
	}); err != nil {
		return fmt.Errorf("making the image %s: %w", reference, err)
	}
	return nil
}

func programLayer(program string) ([]byte, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	w := tar.NewWriter(&b)
	header := &tar.Header{Name: filepath.Base(program), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

type archiveFile struct {
	name    string
	content []byte
}

func writeArchive(path string, files []archiveFile) (err error) {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Rename(path+".new", path)) }()
	w := tar.NewWriter(f)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content)), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(file.content); err != nil {
			return err
		}
	}
	return w.Close()
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
