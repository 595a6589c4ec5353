// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/url"
)

// Hardware is the machine in the record of a node; see slurm.conf(5), NODE CONFIGURATION. What is zero is not given.
type Hardware struct {
	CPUs int
	// Sockets are those of the machine, Cores those of a socket, and Threads those of a core.
	Sockets, Cores, Threads int
	// CoreSpecCount are the cores, and MemSpecLimit the MiB, that jobs may not use.
	CoreSpecCount int
	MemSpecLimit  int64
	RealMemory    int64 // MiB
	// Gres are the generic resources, such as "gpu:a100:2(S:0-1)".
	Gres string
}

// Hardware asks for the machine in the record of one node. A node that Slurm does not have is Refused, as with Node.
func (c *Client) Hardware(ctx context.Context, name string) (Hardware, error) {
	var nodes []namedHardware
	err := c.get(ctx, "node/"+url.PathEscape(name), func(r *reader) (errs []slurmError, err error) {
		nodes, errs, err = decodeHardware(r)
		if err == nil && len(errs) == 0 && (len(nodes) != 1 || nodes[0].name != name) {
			err = errOthers
		}
		return errs, err
	})
	if err != nil {
		return Hardware{}, fmt.Errorf("asking %s about the machine of Slurm node %s: %w", c, name, err)
	}
	return nodes[0].Hardware, nil
}

type namedHardware struct {
	name string
	Hardware
}

// decodeHardware reads the machines of an answer to GET node.
func decodeHardware(r *reader) (nodes []namedHardware, errs []slurmError, err error) {
	var a answer
	err = a.decode(r, func(key string) bool {
		if key != "nodes" || r.peek() == 'n' {
			return false
		}
		nodes = nil
		for ok := r.open('['); ok && r.admit(len(nodes), MaxNodes, "nodes"); ok = r.more('[') {
			nodes = append(nodes, r.hardware())
		}
		return true
	})
	return nodes, a.errors, err
}

func (r *reader) hardware() namedHardware {
	var h namedHardware
	number := func() int { return int(r.quantity().number) }
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "name":
			h.name = r.text("")
		case "cpus":
			h.CPUs = number()
		case "sockets":
			h.Sockets = number()
		case "cores":
			h.Cores = number()
		case "threads":
			h.Threads = number()
		case "specialized_cores":
			h.CoreSpecCount = number()
		case "specialized_memory":
			h.MemSpecLimit = r.quantity().number
		case "real_memory":
			h.RealMemory = r.quantity().number
		case "gres":
			h.Gres = r.text("")
		default:
			r.skip()
		}
	}
	return h
}
