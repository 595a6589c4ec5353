// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/coxswain-hpc/coxswain/dev/internal/cgroup"
	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/pki"
)

// hostState is how the host was before the first cluster with nodes, as far as
// clusters change it together.
type hostState struct {
	// SubtreeControl are the controllers that each version 2 cgroup root
	// passed on.
	SubtreeControl map[string][]string `json:"subtreeControl"`
}

// rememberHost saves the host's state unless another cluster already did. The
// caller holds the root's lock.
func rememberHost(root layout.Root) error {
	if _, err := os.Stat(root.HostState()); err == nil {
		return nil
	}
	mounts, err := cgroup.Mounts()
	if err != nil {
		return err
	}
	var h hostState
	if h.SubtreeControl, err = cgroup.SubtreeControl(mounts); err != nil {
		return err
	}
	b, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("remembering the host's state: %w", err)
	}
	return pki.WriteFile(root.HostState(), b, 0o600)
}

// restoreHost puts the host's state back. The caller holds the root's lock and
// knows that no cluster with nodes is left.
func restoreHost(root layout.Root) error {
	b, err := os.ReadFile(root.HostState())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restoring the host's state: %w", err)
	}
	var h hostState
	if err := json.Unmarshal(b, &h); err != nil {
		return fmt.Errorf("restoring the host's state from %s: %w", root.HostState(), err)
	}
	if err := cgroup.RestoreSubtreeControl(h.SubtreeControl); err != nil {
		return err
	}
	return os.Remove(root.HostState())
}
