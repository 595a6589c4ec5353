// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images finds the container images that images/build keeps as archives, and unpacks them.
package images

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Archive returns where images/build keeps a group of images ("slurm", "operator") of a tag.
func Archive(group, tag string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "coxswain", "images", group+"-"+tag+".tar")
}

// Unpack lays the files of images of an archive into a directory, one image over the other: a root file system in which their
// programs run without a container. What a layer deletes of the one below stays.
func Unpack(ctx context.Context, archive, dir string, names ...string) error {
	list, err := shell(ctx, `tar -xOf "$1" manifest.json`, archive)
	if err != nil {
		return fmt.Errorf("listing the images of %s: %w", archive, err)
	}
	var images []struct {
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(list, &images); err != nil {
		return fmt.Errorf("reading the list of images in %s: %w", archive, err)
	}
	laid := map[string]bool{}
	for _, name := range names {
		found := false
		for _, image := range images {
			if !slices.ContainsFunc(image.RepoTags, func(tag string) bool { return strings.HasPrefix(path.Base(tag), name+":") }) {
				continue
			}
			found = true
			for _, layer := range image.Layers {
				if laid[layer] {
					continue
				}
				laid[layer] = true
				if _, err := shell(ctx, `tar -xOf "$1" "$2" | tar -C "$3" --exclude='.wh.*' -xf -`, archive, layer, dir); err != nil {
					return fmt.Errorf("unpacking %s of %s: %w", name, archive, err)
				}
			}
		}
		if !found {
			return fmt.Errorf("unpacking %s: it is not in %s", name, archive)
		}
	}
	return nil
}

func shell(ctx context.Context, script string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", "set -o pipefail; " + script, "images"}, args...)...) //nolint:gosec // scripts of this file
	out, err := cmd.Output()
	if failure, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as exec returns it
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failure.Stderr)))
	}
	return out, err
}
