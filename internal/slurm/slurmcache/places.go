// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"sync"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// places are nodes by their addresses and host names. The maps are made at the first call: most lists are never asked.
type places struct {
	nodes map[string]*rest.Node
	once  sync.Once
	by    map[string][]*rest.Node
}

func (p *places) at(place string) []*rest.Node {
	if p == nil {
		return nil
	}
	p.once.Do(func() {
		p.by = make(map[string][]*rest.Node, 2*len(p.nodes))
		for _, n := range p.nodes {
			p.by[n.Address] = append(p.by[n.Address], n)
			if n.Hostname != n.Address {
				p.by[n.Hostname] = append(p.by[n.Hostname], n)
			}
		}
	})
	return p.by[place]
}
