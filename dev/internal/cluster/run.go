// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Command is a command to run in the foreground.
type Command struct {
	Args []string
	// Env is added to the environment.
	Env []string
}

// Kubectl returns the command kubectl for the cluster's administrator.
func (c *Cluster) Kubectl(args []string) (Command, error) {
	if err := c.load(); err != nil {
		return Command{}, err
	}
	return Command{
		Args: append([]string{c.program("kubectl")}, args...),
		Env:  []string{"KUBECONFIG=" + c.Kubeconfig()},
	}, nil
}

// Shell returns a command that runs inside a node, a shell by default.
func (c *Cluster) Shell(ctx context.Context, node string, command []string) (Command, error) {
	if err := c.load(); err != nil {
		return Command{}, err
	}
	inits, err := c.nodeInits(ctx)
	if err != nil {
		return Command{}, err
	}
	init, ok := inits[node]
	if !ok {
		return Command{}, fmt.Errorf("entering %s: no such node runs; there are: %s", node, strings.Join(c.nodeNames(), ", "))
	}
	if len(command) == 0 {
		command = []string{"bash"}
	}
	args := []string{"nsenter", "--target", strconv.Itoa(init.PID), "--mount", "--uts", "--ipc", "--net", "--pid", "--"}
	return Command{Args: append(args, command...)}, nil
}
