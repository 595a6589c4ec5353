// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

// Status is what the command status prints, as a value.
type Status struct {
	state.State
	// Healthy is true if every process runs and all is ready.
	Healthy    bool   `json:"healthy"`
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	Logs       string `json:"logs"`
	Storage    string `json:"storage,omitempty"`
	// Host is the host's address for pods and nodes; empty without nodes.
	Host       string            `json:"host,omitempty"`
	Components []ComponentStatus `json:"components"`
}

// ComponentStatus is the status of one process on the host.
type ComponentStatus struct {
	Name string `json:"name"`
	// PID is 0 if it does not run.
	PID     int       `json:"pid"`
	Started time.Time `json:"started,omitzero"`
	// Problem is empty if there is none.
	Problem string `json:"problem,omitempty"`
	// Ready is what was asked of the component itself, beyond its running.
	Ready bool `json:"ready"`
}

// Status looks at the cluster. A cluster that was never brought up is
// ErrNotFound.
func (c *Cluster) Status(ctx context.Context) (*Status, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	running, err := c.running(ctx)
	if err != nil {
		return nil, err
	}
	s := &Status{State: c.state, Healthy: true, Kubeconfig: c.Kubeconfig(), Server: c.state.APIServer(), Logs: c.Logs()}
	if !c.state.ControlPlaneOnly {
		s.Host, s.Storage = c.state.Network.Host().String(), c.Storage()
	}
	for _, name := range c.expected() {
		component := ComponentStatus{Name: name}
		if p, ok := running[name]; ok {
			component.PID, component.Started = p.PID, p.Started
			if err := c.ask(ctx, name); err != nil {
				component.Problem = err.Error()
			} else {
				component.Ready = true
			}
		} else {
			component.Problem = "does not run"
		}
		s.Healthy = s.Healthy && component.Ready
		s.Components = append(s.Components, component)
	}
	return s, nil
}

// ask asks a running component whether it is ready, where it can be asked.
func (c *Cluster) ask(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	switch name {
	case etcd, controllerManager, scheduler, hostController, netSwitch:
		return nil
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	if name == apiserver {
		return client.Ready(ctx)
	}
	n, err := client.Node(ctx, name)
	if err != nil {
		return err
	}
	if !n.Ready {
		return fmt.Errorf("not ready: %s", n.Message)
	}
	return nil
}

// Print writes the status for people.
func (s *Status) Print(w io.Writer, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "COMPONENT\tPID\tUPTIME\tSTATUS\n")
	for _, c := range s.Components {
		status, pid, uptime := "ready", "-", "-"
		if !c.Ready {
			status = c.Problem
		}
		if c.PID != 0 {
			pid, uptime = strconv.Itoa(c.PID), now.Sub(c.Started).Truncate(time.Second).String()
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Name, pid, uptime, status)
	}
	err := t.Flush()
	if err == nil {
		_, err = fmt.Fprintf(w, "\napiserver   %s\nkubeconfig  %s\nlogs        %s\n", s.Server, s.Kubeconfig, s.Logs)
	}
	if err == nil && s.Host != "" {
		_, err = fmt.Fprintf(w, "host        %s (for pods)\nstorage     %s\n", s.Host, s.Storage)
	}
	if err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	return nil
}
