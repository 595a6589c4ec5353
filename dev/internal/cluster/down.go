// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/cgroup"
	"github.com/coxswain-hpc/coxswain/dev/internal/hostnet"
	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

// downTimeout bounds the wait for the kernel to let go of what was killed.
const downTimeout = 30 * time.Second

// Down ends the cluster and undoes all that it changed on the host. Logs
// and the nodes' images stay unless purge is set. It needs no state: leftovers
// are found by their names.
func (c *Cluster) Down(ctx context.Context, purge bool) error {
	if _, err := os.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		c.progress.Step("there is no cluster %s", c.Name)
		return nil
	}
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, downTimeout, fmt.Errorf("not within %v", downTimeout))
	defer cancel()
	running, err := c.running(ctx)
	if err != nil {
		return err
	}
	// Nothing of it is needed again, so nothing is asked to end in order. A
	// node's process 1 takes all that runs in the node with it.
	if err := proc.Kill(ctx, running); err != nil {
		return err
	}
	if err := hostnet.RemoveLink(ctx, c.ID()); err != nil {
		return err
	}
	mounts, err := cgroup.Mounts()
	if err != nil {
		return err
	}
	if err := cgroup.Remove(ctx, mounts, c.cgroupParent()); err != nil {
		return err
	}
	if err := c.removeFiles(purge); err != nil {
		return err
	}
	if err := c.forget(ctx); err != nil {
		return err
	}
	if purge {
		if err := errors.Join(os.RemoveAll(c.Dir), os.Remove(c.Lock())); err != nil {
			return fmt.Errorf("removing the cluster's directory: %w", err)
		}
	}
	c.progress.Step("cluster %s is down", c.Name)
	return nil
}

// removeFiles removes the cluster's files but the state, the logs and the stores
// of images.
func (c *Cluster) removeFiles(purge bool) error {
	var errs []error
	for _, path := range []string{c.Kubeconfig(), c.PKI(), c.Config(), c.Etcd(), c.Storage()} {
		errs = append(errs, os.RemoveAll(path))
	}
	if purge {
		errs = append(errs, os.RemoveAll(c.Nodes()), os.RemoveAll(c.Logs()), os.RemoveAll(c.Logs()+".previous"))
		return errors.Join(errs...)
	}
	nodes, err := os.ReadDir(c.Nodes())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, n := range nodes {
		dir := c.Node(n.Name())
		errs = append(errs, removeAllBut(dir.Dir, dir.Containerd(), dir.Images()))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the cluster's files: %w", err)
	}
	return nil
}

// removeAllBut removes what is below dir, but not the trees in keep.
func removeAllBut(dir string, keep ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case slices.Contains(keep, path):
		case slices.ContainsFunc(keep, func(k string) bool { return isBelow(k, path) }):
			errs = append(errs, removeAllBut(path, keep...))
		default:
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

func isBelow(path, dir string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(relative)
}

// forget removes the state and, with that of the last cluster that has nodes,
// restores what the clusters changed together.
func (c *Cluster) forget(ctx context.Context) error {
	release, err := layout.Acquire(ctx, c.Root.Lock(), nil)
	if err != nil {
		return err
	}
	defer release()
	if err := os.Remove(c.State()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the state: %w", err)
	}
	others, err := c.others()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(o state.State) bool { return !o.ControlPlaneOnly }) {
		return nil
	}
	return restoreHost(c.Root)
}
