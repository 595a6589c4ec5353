// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/binaries"
	"github.com/coxswain-hpc/coxswain/dev/internal/hostnet"
	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/preflight"
	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

// DefaultNodes is the number of nodes of a new cluster.
const DefaultNodes = 2

// UpOptions are the wishes of the user.
type UpOptions struct {
	// Nodes is the number of nodes; 0 is the number of the existing cluster, or
	// DefaultNodes.
	Nodes int
	// Names are names of wanted nodes, each with a domain. Those that
	// are not there take the highest numbers, above the nodes that are.
	Names []string
	// ControlPlaneOnly asks for a cluster without nodes.
	ControlPlaneOnly bool
	// Source is the directory of this module, empty to search for it.
	Source string
}

// attempts bounds how often Up begins again because a process ended that it
// had found running.
const attempts = 3

// Up makes the cluster, or repairs what is not as it should be.
func (c *Cluster) Up(ctx context.Context, o UpOptions) error {
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	for range attempts {
		if err = c.bringUp(ctx, o); err == nil || ctx.Err() != nil {
			return err
		}
		component, ok := c.watched.foundEnded()
		if !ok {
			return err
		}
		c.progress.Step("the process %s ended meanwhile, beginning again", component)
	}
	return err
}

func (c *Cluster) bringUp(ctx context.Context, o UpOptions) error {
	running, err := c.running(ctx)
	if err != nil {
		return err
	}
	c.watched.reset(running)
	if err := c.prepare(ctx, o, running); err != nil {
		return err
	}
	if err := c.writeCertificates(); err != nil {
		return err
	}
	if c.state.ControlPlaneOnly {
		err = c.startControlPlane(ctx, running)
	} else {
		err = c.startAll(ctx, running)
	}
	if err != nil {
		return err
	}
	return c.ended(c.expected()...)
}

// prepare decides what the cluster is, makes sure that the machine can have it
// and that its programs are built, and saves the state.
func (c *Cluster) prepare(ctx context.Context, o UpOptions, running map[string]proc.Process) error {
	old, err := state.Load(c.State())
	if err != nil {
		return err
	}
	want, err := decide(c.Name, o, old)
	if err != nil {
		return err
	}
	// A running cluster keeps its programs: a mixture of versions is no help.
	out, built := want.Binaries, true
	source := ""
	if _, err := os.Stat(out); len(running) == 0 || err != nil {
		if source, err = binaries.FindSource(o.Source); err != nil {
			return err
		}
		out, built = "", false
		if _, err := exec.LookPath("go"); err == nil {
			if out, built, err = binaries.Locate(ctx, source, c.Root.Binaries()); err != nil {
				return err
			}
		}
	}
	if err := c.preflight(ctx, want, built); err != nil {
		return err
	}
	if !built {
		if err := binaries.Build(ctx, source, out, c.progress, binaries.Options{}); err != nil {
			return err
		}
	}
	want.Binaries = out
	if old == nil {
		if err := c.keepLogs(); err != nil {
			return err
		}
	}
	return c.settle(ctx, want, old == nil)
}

func (c *Cluster) preflight(ctx context.Context, want state.State, built bool) error {
	w := preflight.Wanted{ControlPlaneOnly: want.ControlPlaneOnly}
	facts, err := preflight.Gather(ctx, string(c.Root), built, w)
	if err != nil {
		return err
	}
	problems := preflight.Problems(facts, w)
	if len(problems) == 0 {
		return nil
	}
	var errs []error
	for _, p := range problems {
		errs = append(errs, errors.New(p))
	}
	return errors.Join(errs...)
}

// decide returns the state to reach, from the options and the present state.
func decide(name string, o UpOptions, old *state.State) (state.State, error) {
	if o.Nodes < 0 || o.Nodes > state.MaxNodes {
		return state.State{}, fmt.Errorf("--nodes %d: want 1 to %d", o.Nodes, state.MaxNodes)
	}
	if err := checkNames(o.Names); err != nil {
		return state.State{}, err
	}
	if o.ControlPlaneOnly && (o.Nodes > 0 || len(o.Names) > 0) {
		return state.State{}, errors.New("--control-plane-only excludes --nodes and --node-names")
	}
	if old == nil {
		s := state.State{Name: name, ControlPlaneOnly: o.ControlPlaneOnly, Nodes: o.Nodes}
		if s.Nodes == 0 && !s.ControlPlaneOnly {
			s.Nodes = DefaultNodes
		}
		return withNames(s, 0, o.Names)
	}
	s := *old
	switch {
	case o.ControlPlaneOnly && !s.ControlPlaneOnly:
		return s, fmt.Errorf("cluster %s has nodes: choose another --name, or \"localkube down --name %s\" first", name, name)
	case (o.Nodes > 0 || len(o.Names) > 0) && s.ControlPlaneOnly:
		return s, fmt.Errorf("cluster %s has no nodes: choose another --name, or \"localkube down --name %s\" first", name, name)
	case o.Nodes > 0 && o.Nodes < s.Nodes:
		return s, fmt.Errorf("cluster %s has %d nodes, and none is taken away while it runs: \"localkube down --name %s\" first", name, s.Nodes, name)
	case o.Nodes > s.Nodes:
		s.Nodes = o.Nodes
	}
	return withNames(s, old.Nodes, o.Names)
}

// settle chooses ports and subnets for a new cluster and saves the state. One
// cluster does so at a time, so that no two choose the same.
func (c *Cluster) settle(ctx context.Context, want state.State, fresh bool) error {
	release, err := layout.Acquire(ctx, c.Root.Lock(), nil)
	if err != nil {
		return err
	}
	defer release()
	others, err := c.others()
	if err != nil {
		return err
	}
	if fresh {
		if err := c.choose(ctx, &want, others); err != nil {
			return err
		}
	}
	if err := want.Save(c.State()); err != nil {
		return err
	}
	c.state = want
	inUse := []string{want.Binaries}
	for _, o := range others {
		inUse = append(inUse, o.Binaries)
	}
	if err := binaries.Prune(c.Root.Binaries(), inUse, time.Now()); err != nil {
		return err
	}
	if want.ControlPlaneOnly {
		return nil
	}
	return rememberHost(c.Root)
}

// others returns the states of the other clusters.
func (c *Cluster) others() ([]state.State, error) {
	clusters, err := c.Root.Clusters()
	if err != nil {
		return nil, err
	}
	var others []state.State
	for _, other := range clusters {
		if other.Name == c.Name {
			continue
		}
		s, err := state.Load(other.State())
		if err != nil {
			return nil, err
		}
		if s != nil {
			others = append(others, *s)
		}
	}
	return others, nil
}

func (c *Cluster) choose(ctx context.Context, want *state.State, others []state.State) error {
	var ports []uint16
	var subnets []netip.Prefix
	for _, o := range others {
		ports = append(ports, o.Ports.API, o.Ports.Etcd, o.Ports.EtcdPeer)
		subnets = append(subnets, o.Network.Pods, o.Network.Hosts, o.Network.LoadBalancers, o.Network.Services)
	}
	// Without nodes nothing is routed, so only the clusters must not overlap.
	if !want.ControlPlaneOnly {
		used, err := hostnet.Used(ctx)
		if err != nil {
			return err
		}
		subnets = append(subnets, used...)
	}
	var err error
	want.Ports, err = state.ChoosePorts(c.ID(), func(port uint16) bool {
		return slices.Contains(ports, port) || portInUse(ctx, port)
	})
	if err != nil {
		return err
	}
	want.Network, err = state.ChooseNetwork(c.ID(), subnets)
	return err
}
