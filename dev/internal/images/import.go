// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/coxswain-hpc/coxswain/dev/internal/pki"
	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
)

// Store is the containerd of one node, addressed from the host.
type Store struct {
	// Socket is containerd's socket as the host sees it.
	Socket string
	// Record is the file that remembers which images were imported; only an
	// image's reference can be asked of containerd, not what it was made from.
	Record string
}

// Ready returns nil when containerd answers.
func (s Store) Ready(ctx context.Context) error {
	_, err := s.ctr(ctx, "images", "ls", "-q")
	return err
}

// Import imports an archive unless the store already has all its images. It
// reports whether it did.
func (s Store) Import(ctx context.Context, path string) (imported bool, err error) {
	images, err := Read(path)
	if err != nil {
		return false, err
	}
	record, err := s.current(ctx)
	if err != nil {
		return false, err
	}
	missing := false
	for _, i := range images {
		missing = missing || record[i.Reference] != i.Config
	}
	if !missing {
		return false, nil
	}
	if err := s.importArchive(ctx, path); err != nil {
		return false, fmt.Errorf("importing %s: %w", path, err)
	}
	for _, i := range images {
		record[i.Reference] = i.Config
	}
	b, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return true, fmt.Errorf("recording imported images: %w", err)
	}
	return true, pki.WriteFile(s.Record, b, 0o644)
}

// importArchive imports an archive, and tries again where containerd has lost a layer on the way: one that a former image of the same name has
// left is found, and then collected as garbage, before the layers above it are there.
func (s Store) importArchive(ctx context.Context, path string) (err error) {
	for range 3 {
		_, err = s.ctr(ctx, "images", "import", path)
		if err == nil || !strings.Contains(err.Error(), "parent snapshot") {
			break
		}
	}
	return err
}

// current reads the record and drops what containerd no longer has.
func (s Store) current(ctx context.Context) (map[string]string, error) {
	record := map[string]string{}
	b, err := os.ReadFile(s.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of images: %w", err)
	}
	// An unreadable record costs another import, nothing else.
	_ = json.Unmarshal(b, &record)
	out, err := s.ctr(ctx, "images", "ls", "-q")
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	present := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		present[strings.TrimSpace(line)] = true
	}
	for reference := range record {
		if !present[reference] {
			delete(record, reference)
		}
	}
	return record, nil
}

func (s Store) ctr(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address", s.Socket, "--namespace", "k8s.io"}, args...)...)
	cmd.Env = proc.Environment()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ctr %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
