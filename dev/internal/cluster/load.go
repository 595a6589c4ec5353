// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"fmt"
	"path/filepath"
	"strings"

	"github.com/coxswain-hpc/coxswain/dev/internal/images"
)

// Load imports image archives into all nodes, where they are not there yet.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := c.load(); err != nil {
		return err
	}
	if c.state.ControlPlaneOnly {
		return fmt.Errorf("loading images: cluster %s has no nodes", c.Name)
	}
	for _, a := range archives {
		if _, err := images.Read(a); err != nil {
			return err
		}
	}
	inits, err := c.nodeInits(ctx)
	if err != nil {
		return err
	}
	for _, a := range archives {
		imported := make([]bool, c.state.Nodes)
		err := c.eachNode(func(i int) error {
			name := c.state.NodeName(i)
			init, ok := inits[name]
			if !ok {
				return fmt.Errorf("loading images: %s does not run (\"localkube up\" repairs it)", name)
			}
			store := images.Store{Socket: containerdSocket(init.PID), Record: c.Node(name).Images()}
			var err error
			imported[i-1], err = store.Import(ctx, a)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		c.reportLoad(a, imported)
	}
	return nil
}

func (c *Cluster) reportLoad(archive string, imported []bool) {
	var into []string
	for i, done := range imported {
		if done {
			into = append(into, c.state.NodeName(i+1))
		}
	}
	if len(into) == 0 {
		c.progress.Step("%s is already there", filepath.Base(archive))
		return
	}
	c.progress.Step("loaded %s into %s", filepath.Base(archive), strings.Join(into, ", "))
}
