// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestChoosePorts(t *testing.T) {
	free := func(uint16) bool { return false }
	first, err := ChoosePorts("1a2b3c", free)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		id    string
		inUse func(uint16) bool
		want  func(Ports) bool
	}{
		"the same cluster gets the same ports":         {"1a2b3c", free, func(p Ports) bool { return p == first }},
		"another cluster gets others":                  {"ffffff", free, func(p Ports) bool { return p != first }},
		"a taken apiserver port is avoided":            {"1a2b3c", func(p uint16) bool { return p == first.API }, func(p Ports) bool { return p.API != first.API }},
		"a taken etcd port is avoided":                 {"1a2b3c", func(p uint16) bool { return p == first.EtcdPeer }, func(p Ports) bool { return p.EtcdPeer != first.EtcdPeer }},
		"the only free place is found wherever it may": {"1a2b3c", func(p uint16) bool { return p < 20120 || p > 20122 }, func(p Ports) bool { return p.API == 20120 }},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ChoosePorts(test.id, test.inUse)
			if err != nil || !test.want(p) {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	if p, err := ChoosePorts("1a2b3c", func(uint16) bool { return true }); err == nil {
		t.Errorf("got %+v where no port is free", p)
	}
}

func TestChooseNetwork(t *testing.T) {
	first, err := ChooseNetwork("1a2b3c", nil)
	if err != nil {
		t.Fatal(err)
	}
	parts := []netip.Prefix{first.Hosts, first.LoadBalancers, first.Services, first.Pods}
	for i, p := range parts {
		for _, q := range parts[i+1:] {
			if p.Overlaps(q) {
				t.Errorf("%s overlaps %s", p, q)
			}
		}
		// Whatever of the first network is in use, the second avoids all of it.
		second, err := ChooseNetwork("1a2b3c", []netip.Prefix{p})
		if err != nil || second.Pods == first.Pods {
			t.Errorf("with %s in use: got %+v, %v", p, second, err)
		}
	}
	if n, err := ChooseNetwork("1a2b3c", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); err == nil {
		t.Errorf("got %+v where all of 10.0.0.0/8 is in use", n)
	}
	ipv6 := []netip.Prefix{netip.MustParsePrefix("::/1"), netip.MustParsePrefix("fd00::/8")}
	if n, err := ChooseNetwork("1a2b3c", ipv6); err != nil || n != first {
		t.Errorf("IPv6 routes led to %+v, %v", n, err)
	}
}

func TestAddresses(t *testing.T) {
	p := netip.MustParsePrefix
	n := Network{Hosts: p("10.3.0.0/24"), LoadBalancers: p("10.3.1.0/24"), Services: p("10.3.128.0/17"), Pods: p("10.2.0.0/16")}
	got := map[string]string{
		"host":            n.Host().String(),
		"first node":      n.Node(1).String(),
		"last node":       n.Node(MaxNodes).String(),
		"last node pods":  n.NodePods(MaxNodes).String(),
		"API service":     n.APIService().String(),
		"DNS":             n.DNS().String(),
		"apiserver":       State{Network: n, Ports: Ports{API: 6443}}.APIServer(),
		"without nodes":   State{Network: n, Ports: Ports{API: 6443}, ControlPlaneOnly: true}.APIServer(),
		"first node pods": n.NodePods(1).String(),
	}
	want := map[string]string{
		"host":            "10.3.0.1",
		"first node":      "10.3.0.11",
		"last node":       "10.3.0.110",
		"last node pods":  "10.2.100.0/24",
		"API service":     "10.3.128.1",
		"DNS":             "10.3.128.10",
		"apiserver":       "https://10.3.0.1:6443",
		"without nodes":   "https://127.0.0.1:6443",
		"first node pods": "10.2.1.0/24",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster", "state.json")
	if s, err := Load(path); s != nil || err != nil {
		t.Errorf("loading nothing: %+v, %v", s, err)
	}
	network, err := ChooseNetwork("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := State{Name: "x", Nodes: 3, Names: map[int]string{2: "ip-10-0-0-1.internal"}, Binaries: "/b", Ports: Ports{1, 2, 3}, Network: network}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	for i, name := range []string{"node-1", "ip-10-0-0-1.internal", "node-3"} {
		if got := got.NodeName(i + 1); got != name {
			t.Errorf("node %d is called %s, want %s", i+1, got, name)
		}
	}
}
