// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster brings clusters up, repairs them and takes them down.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/kubeapi"
	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
	"github.com/coxswain-hpc/coxswain/dev/internal/progress"
	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

// Components of the control plane and of the network, by the names of their
// processes and logs.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	hostController    = "host-controller"
	netSwitch         = "switch"
)

// Time-outs are for machines much slower than ours; each failure that can be
// noticed earlier is.
const (
	portTimeout       = 5 * time.Second
	apiTimeout        = 2 * time.Minute
	nodeTimeout       = 3 * time.Minute
	containerdTimeout = time.Minute
	addonTimeout      = 3 * time.Minute
)

// Cluster is one cluster of this machine.
type Cluster struct {
	layout.Cluster
	progress *progress.Printer
	state    state.State
	watched  watched
}

// Open returns the cluster of a name, which need not exist yet.
func Open(root layout.Root, name string, p *progress.Printer) (*Cluster, error) {
	if err := layout.ValidateName(name); err != nil {
		return nil, err
	}
	return &Cluster{Cluster: root.Cluster(name), progress: p}, nil
}

// ErrNotFound is the answer about a cluster that was never brought up.
var ErrNotFound = errors.New("no such cluster")

// load reads the state; a cluster without one is ErrNotFound.
func (c *Cluster) load() error {
	s, err := state.Load(c.State())
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("cluster %s: %w (try \"localkube up\")", c.Name, ErrNotFound)
	}
	c.state = *s
	return nil
}

// lock keeps other commands from changing the cluster until release is called.
func (c *Cluster) lock(ctx context.Context) (release func(), err error) {
	return layout.Acquire(ctx, c.Lock(), func() {
		c.progress.Step("another localkube is at work on cluster %s, waiting for it", c.Name)
	})
}

func (c *Cluster) client() (*kubeapi.Client, error) {
	return kubeapi.New(c.state.APIServer(), c.PKI())
}

func (c *Cluster) program(name string) string { return filepath.Join(c.state.Binaries, name) }

// nodeNames lists the names of the cluster's nodes.
func (c *Cluster) nodeNames() []string {
	var names []string
	for i := 1; i <= c.state.Nodes; i++ {
		names = append(names, c.state.NodeName(i))
	}
	return names
}

// expected lists the processes that a healthy cluster has on the host.
func (c *Cluster) expected() []string {
	names := []string{etcd, apiserver, controllerManager, scheduler}
	if c.state.ControlPlaneOnly {
		return names
	}
	names = append(names, hostController, netSwitch)
	return append(names, c.nodeNames()...)
}

// cgroupParent returns the control group above those of the nodes.
func (c *Cluster) cgroupParent() string { return "localkube-" + c.ID() }

// running finds the cluster's processes.
func (c *Cluster) running(ctx context.Context) (map[string]proc.Process, error) {
	return proc.Find(ctx, c.Dir)
}

// nodeInits returns the processes 1 of the nodes, by the nodes' names.
func (c *Cluster) nodeInits(ctx context.Context) (map[string]proc.Process, error) {
	running, err := c.running(ctx)
	if err != nil {
		return nil, err
	}
	names := c.nodeNames()
	maps.DeleteFunc(running, func(name string, _ proc.Process) bool { return !slices.Contains(names, name) })
	return running, nil
}

// keepLogs moves the logs of the cluster before this one aside.
func (c *Cluster) keepLogs() error {
	previous := c.Logs() + ".previous"
	if err := os.RemoveAll(previous); err != nil {
		return fmt.Errorf("removing old logs: %w", err)
	}
	if err := os.Rename(c.Logs(), previous); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keeping old logs: %w", err)
	}
	return nil
}
