// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout defines where localkube keeps its files. Everything lies below
// one directory; nothing else on the machine is written.
package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Root is the directory that holds everything of localkube.
type Root string

// Default returns ${XDG_CACHE_HOME:-~/.cache}/coxswain/localkube, with
// symbolic links resolved so that one place has one name. It creates the
// directory.
func Default() (Root, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	dir := filepath.Join(cache, "coxswain", "localkube")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("creating the cache directory: %w", err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("resolving the cache directory: %w", err)
	}
	return Root(dir), nil
}

// Binaries returns the directory of built programs, one subdirectory per content key.
func (r Root) Binaries() string { return filepath.Join(string(r), "bin") }

// Images returns the directory of *.tar image archives that every up imports.
func (r Root) Images() string { return filepath.Join(string(r), "images") }

// Lock returns the file locked while ports and subnets are chosen.
func (r Root) Lock() string { return filepath.Join(string(r), "lock") }

// HostState returns the file that remembers what was changed on the host for all
// clusters together.
func (r Root) HostState() string { return filepath.Join(string(r), "host.json") }

// Cluster returns the layout of one cluster.
func (r Root) Cluster(name string) Cluster {
	return Cluster{Name: name, Root: r, Dir: filepath.Join(string(r), "clusters", name)}
}

// Clusters returns the layouts of all clusters that have a directory.
func (r Root) Clusters() ([]Cluster, error) {
	entries, err := os.ReadDir(filepath.Join(string(r), "clusters"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var clusters []Cluster
	for _, e := range entries {
		if e.IsDir() && ValidateName(e.Name()) == nil {
			clusters = append(clusters, r.Cluster(e.Name()))
		}
	}
	return clusters, nil
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// ValidateName returns an error unless a cluster may have this name: a DNS label of at
// most 32 characters.
func ValidateName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("cluster name %q: want lower-case letters, digits and dashes, 32 at most", name)
	}
	return nil
}

// Cluster is the layout of one cluster.
type Cluster struct {
	Name string
	Root Root
	Dir  string
}

// ID is six hexadecimal digits derived from the directory: short enough for
// interface names and the same without any state file, so that leftovers can
// be found.
func (c Cluster) ID() string {
	sum := sha256.Sum256([]byte(c.Dir))
	return hex.EncodeToString(sum[:3])
}

// State returns the file with the cluster's ports, subnets and size.
func (c Cluster) State() string { return filepath.Join(c.Dir, "state.json") }

// Lock returns the file locked by each command that changes the cluster. It lies
// outside of the directory, which down may remove.
func (c Cluster) Lock() string { return c.Dir + ".lock" }

// Kubeconfig returns the administrator's kubeconfig.
func (c Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// PKI returns the directory of keys, certificates and the components' kubeconfigs.
func (c Cluster) PKI() string { return filepath.Join(c.Dir, "pki") }

// Config returns the directory of generated configuration files.
func (c Cluster) Config() string { return filepath.Join(c.Dir, "config") }

// Etcd is etcd's data directory.
func (c Cluster) Etcd() string { return filepath.Join(c.Dir, "etcd") }

// Storage returns the directory whose subdirectories are the PersistentVolumes.
func (c Cluster) Storage() string { return filepath.Join(c.Dir, "storage") }

// Logs returns the directory of log files, kept after down.
func (c Cluster) Logs() string { return filepath.Join(c.Dir, "logs") }

// Log returns the log file of one component.
func (c Cluster) Log(component string) string { return filepath.Join(c.Logs(), component+".log") }

// Nodes returns the parent of the nodes' directories.
func (c Cluster) Nodes() string { return filepath.Join(c.Dir, "nodes") }

// Node returns the directory of one node.
func (c Cluster) Node(name string) Node { return Node{Name: name, Dir: filepath.Join(c.Nodes(), name)} }

// Node is the layout of one node's directory.
type Node struct {
	Name string
	Dir  string
}

// Var is mounted over /var inside the node.
func (n Node) Var() string { return filepath.Join(n.Dir, "var") }

// Containerd is containerd's root. It survives down as a cache of images; the
// node sees it as /var/lib/containerd.
func (n Node) Containerd() string { return filepath.Join(n.Dir, "var", "lib", "containerd") }

// Images returns the record of imported images.
func (n Node) Images() string { return filepath.Join(n.Dir, "images.json") }

// Spec returns the file from which the node's init reads what to do.
func (n Node) Spec() string { return filepath.Join(n.Dir, "node.json") }

// Config returns a generated configuration file of the node.
func (n Node) Config(file string) string { return filepath.Join(n.Dir, "config", file) }
