// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Kubectl returns the command kubectl for the cluster's administrator.
func (c *Cluster) Kubectl(ctx context.Context, args []string) (*exec.Cmd, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, c.program("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	return cmd, nil
}

// Shell returns a command that runs inside a node, a shell by default.
func (c *Cluster) Shell(ctx context.Context, node string, command []string) (*exec.Cmd, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	inits, err := c.nodeInits()
	if err != nil {
		return nil, err
	}
	init, ok := inits[node]
	if !ok {
		return nil, fmt.Errorf("entering %s: no such node runs; there are: %s", node, strings.Join(c.nodeNames(), ", "))
	}
	if len(command) == 0 {
		command = []string{"bash"}
	}
	args := append([]string{"--target", strconv.Itoa(init.PID), "--all", "--"}, command...)
	return exec.CommandContext(ctx, "nsenter", args...), nil
}
