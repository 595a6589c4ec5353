// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node is one Kubernetes node: a process tree with network, mount,
// PID, IPC and UTS namespaces of its own that shares the host's kernel, its
// programs and most of its files.
package node

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/coxswain-hpc/coxswain/dev/internal/pki"
)

// Spec is what a node's init has to do.
type Spec struct {
	// Name is the node's name and hostname.
	Name string `json:"name"`
	// Root is localkube's directory, visible in the node at the same path.
	Root string `json:"root"`
	// Var is the directory that becomes /var.
	Var string `json:"var"`
	// Resolv is the file that becomes /etc/resolv.conf. The host's leads to
	// servers that a node cannot reach, and waiting for them takes long.
	Resolv string `json:"resolv"`
	// Cgroup is the control group of the init and the daemons.
	Cgroup string `json:"cgroup"`
	// APIServer and CA are the URL of the apiserver and the file of its authority.
	APIServer string `json:"apiServer"`
	CA        string `json:"ca"`
	// Daemons run for as long as the node.
	Daemons []Daemon `json:"daemons"`
}

// Daemon is a program that the node's init starts, and starts again when it ends.
type Daemon struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
	Log  string   `json:"log"`
	// AfterAPI daemons start once the apiserver is ready; the kubelet would
	// otherwise back off for seconds.
	AfterAPI bool `json:"afterAPI"`
}

// Save writes the specification for the node's init.
func (s Spec) Save(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the specification of %s: %w", s.Name, err)
	}
	return pki.WriteFile(path, b, 0o600)
}

func loadSpec(path string) (Spec, error) {
	var s Spec
	b, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("reading the node's specification: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("reading the node's specification %s: %w", path, err)
	}
	return s, nil
}
