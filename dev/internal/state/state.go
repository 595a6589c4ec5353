// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state is what localkube remembers about a cluster: its shape and
// the ports and subnets that were free when it was made.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// State is the content of state.json. It is written before anything else is
// made and removed last.
type State struct {
	Name string `json:"name"`
	// ControlPlaneOnly clusters have no nodes, need no root and listen on
	// the loopback interface.
	ControlPlaneOnly bool `json:"controlPlaneOnly"`
	// Nodes is the number of nodes, named node-1, node-2, …, but for those in Names.
	Nodes int `json:"nodes"`
	// Names are the names with a domain of the nodes that have one, by number.
	Names map[int]string `json:"names,omitempty"`
	// Binaries is the directory of the programs that the cluster runs.
	Binaries string  `json:"binaries"`
	Ports    Ports   `json:"ports"`
	Network  Network `json:"network"`
}

// Ports are TCP ports on the host.
type Ports struct {
	API      uint16 `json:"api"`
	Etcd     uint16 `json:"etcd"`
	EtcdPeer uint16 `json:"etcdPeer"`
}

// Network holds the IPv4 subnets of a cluster.
type Network struct {
	// Hosts is the /24 that the host (.1) and the nodes (.11, .12, …) share.
	Hosts netip.Prefix `json:"hosts"`
	// LoadBalancers is the /24 from which Services of type LoadBalancer get
	// their addresses.
	LoadBalancers netip.Prefix `json:"loadBalancers"`
	// Services is the range of cluster IPs.
	Services netip.Prefix `json:"services"`
	// Pods is the /16 of which each node has a /24.
	Pods netip.Prefix `json:"pods"`
}

// MaxNodes is the largest number of nodes the subnets have room for.
const MaxNodes = 100

// NodeName returns the name of the i-th node, from 1.
func (s State) NodeName(i int) string {
	if name, ok := s.Names[i]; ok {
		return name
	}
	return fmt.Sprintf("node-%d", i)
}

// APIHost returns the address on which the apiserver listens.
func (s State) APIHost() netip.Addr {
	if s.ControlPlaneOnly {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return s.Network.Host()
}

// APIServer returns the URL of the apiserver, the same for the host and the nodes.
func (s State) APIServer() string {
	return "https://" + netip.AddrPortFrom(s.APIHost(), s.Ports.API).String()
}

// Host returns the host's address on the network it shares with the nodes. Pods
// reach services of the host there.
func (n Network) Host() netip.Addr { return offset(n.Hosts, 1) }

// Node returns the address of the i-th node, from 1.
func (n Network) Node(i int) netip.Addr { return offset(n.Hosts, 10+i) }

// NodePods returns the pod subnet of the i-th node, from 1.
func (n Network) NodePods(i int) netip.Prefix {
	return netip.PrefixFrom(offset(n.Pods, i<<8), 24)
}

// APIService returns the cluster IP of the Service kubernetes.
func (n Network) APIService() netip.Addr { return offset(n.Services, 1) }

// DNS returns the cluster IP of the cluster's DNS service.
func (n Network) DNS() netip.Addr { return offset(n.Services, 10) }

func offset(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// Load reads a state file. A missing file is (nil, nil).
func Load(path string) (*State, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state file: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("reading the state file %s: %w", path, err)
	}
	return s, nil
}

// Save writes a state file atomically.
func (s State) Save(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	// The directories of volumes are open to all, so this one is not.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("saving the state: %w", err)
	}
	return nil
}
