// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"hash/fnv"
	"net/netip"
	"slices"
)

const (
	// firstPort and lastPort lie below Linux's range of ephemeral ports.
	firstPort, lastPort = 20000, 29990
	portStep            = 10
	// blocks is the number of /15 blocks in 10.0.0.0/8.
	blocks = 128
)

// ChoosePorts returns ports that are free according to inUse. The search
// starts at a place derived from id, so a cluster normally keeps its ports
// when it is made anew and two clusters rarely compete.
func ChoosePorts(id string, inUse func(port uint16) bool) (Ports, error) {
	const slots = (lastPort - firstPort) / portStep
	start := int(hash(id) % slots)
	for i := range slots {
		base := uint16(firstPort + portStep*((start+i)%slots))
		p := Ports{API: base, Etcd: base + 1, EtcdPeer: base + 2}
		if !inUse(p.API) && !inUse(p.Etcd) && !inUse(p.EtcdPeer) {
			return p, nil
		}
	}
	return Ports{}, errors.New("choosing ports: no three neighbouring ports between 20000 and 29990 are free")
}

// ChooseNetwork returns subnets that overlap none of used: a block 10.X.0.0/15
// with an even X, its first half for the pods, the second for the rest.
func ChooseNetwork(id string, used []netip.Prefix) (Network, error) {
	start := int(hash(id) % blocks)
	for i := range blocks {
		x := byte(2 * ((start + i) % blocks))
		block := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, x, 0, 0}), 15)
		if overlapsAny(block, used) {
			continue
		}
		at := func(third byte, bits int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, x + 1, third, 0}), bits)
		}
		return Network{
			Pods:          netip.PrefixFrom(block.Addr(), 16),
			Hosts:         at(0, 24),
			LoadBalancers: at(1, 24),
			Services:      at(128, 17),
		}, nil
	}
	return Network{}, errors.New("choosing subnets: every 10.X.0.0/15 overlaps a route or address of this machine (see \"ip route show table all\")")
}

func overlapsAny(p netip.Prefix, used []netip.Prefix) bool {
	return slices.ContainsFunc(used, p.Overlaps)
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}
