// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Node is what Coxswain reads of a Slurm node. Slices may be shared between nodes; nobody changes them.
//
// Fields that change without anything having happened (cpu_load, last_busy, energy) are left out on purpose: a Node that
// differs from its predecessor is news. FreeMemory is the exception; it makes no difference.
type Node struct {
	Name string
	// Address is NodeAddr, Hostname NodeHostName; Slurm fills both with the name when nothing else is known.
	Address  string
	Hostname string
	// State is the base state and its flags, as Slurm writes them: "IDLE", "DRAIN", "DYNAMIC_NORM" … Package node has what they mean.
	State []string
	// Reason is why the node is drained or down, ReasonUser who set it and ReasonTime when. Slurm may name a user although there is no
	// reason.
	Reason     string
	ReasonUser string
	ReasonTime time.Time
	// Comment is free text that survives a restart of slurmd; Extra and InstanceID are overwritten by it.
	Comment      string
	Extra        string
	InstanceID   string
	InstanceType string
	// Features are the available features, ActiveFeatures those that are active.
	Features       []string
	ActiveFeatures []string
	Partitions     []string
	// Reservation is the name of the reservation that holds the node now.
	Reservation string
	// Topology is where the node is in each topology ("default:leaf1"); empty before v0.0.43.
	Topology string
	// Version is the release of the node's slurmd.
	Version string
	// BootTime is when the node's operating system started, SlurmdTime when its slurmd did; zero when never registered.
	BootTime   time.Time
	SlurmdTime time.Time
	// CPUs are configured, AllocCPUs given to jobs, EffectiveCPUs those that jobs can have.
	CPUs, AllocCPUs, EffectiveCPUs int
	// RealMemory is configured, AllocMemory given to jobs, SpecializedMemory kept for Slurm and the system; all in MiB.
	RealMemory, AllocMemory, SpecializedMemory int64
	// FreeMemory is what the operating system had free when slurmd registered or was asked last, in MiB; -1 is not known.
	FreeMemory int64
	// TRES are the trackable resources that are configured: "cpu=64,mem=500G,billing=64,gres/gpu=8". GPUs are among them where
	// AccountingStorageTRES has them. Gres are the generic resources: "gpu:h100:8(S:0-1),shard:8".
	TRES, Gres string
}

// Equal reports whether two nodes are the same in every field but FreeMemory.
func (n *Node) Equal(o *Node) bool {
	return n.Name == o.Name && n.Address == o.Address && n.Hostname == o.Hostname &&
		slices.Equal(n.State, o.State) &&
		n.Reason == o.Reason && n.ReasonUser == o.ReasonUser && n.ReasonTime.Equal(o.ReasonTime) &&
		n.Comment == o.Comment && n.Extra == o.Extra &&
		n.InstanceID == o.InstanceID && n.InstanceType == o.InstanceType &&
		slices.Equal(n.Features, o.Features) && slices.Equal(n.ActiveFeatures, o.ActiveFeatures) &&
		slices.Equal(n.Partitions, o.Partitions) &&
		n.Reservation == o.Reservation && n.Topology == o.Topology && n.Version == o.Version &&
		n.BootTime.Equal(o.BootTime) && n.SlurmdTime.Equal(o.SlurmdTime) &&
		n.CPUs == o.CPUs && n.AllocCPUs == o.AllocCPUs && n.EffectiveCPUs == o.EffectiveCPUs &&
		n.RealMemory == o.RealMemory && n.AllocMemory == o.AllocMemory && n.SpecializedMemory == o.SpecializedMemory && n.TRES == o.TRES && n.Gres == o.Gres
}

// NodeList is an answer to "which nodes are there".
type NodeList struct {
	// Unchanged is true if nothing changed since the time that was asked for; Nodes is nil then.
	Unchanged bool
	// Updated is slurmctld's time of the answer, to be passed as since next time. It is zero for Unchanged.
	Updated time.Time
	// Nodes are all nodes of the cluster, in Slurm's order, each name once.
	Nodes []*Node
	Meta  Meta
}

// Nodes lists all nodes, or answers Unchanged when none changed since then. A zero since always lists. Slurm counts
// whole seconds and calls a change within the second of since a change, so an answer's Updated misses nothing.
//
// No nodes are an answer only when the answer has a time; see the package comment.
func (c *Client) Nodes(ctx context.Context, since time.Time) (NodeList, error) {
	var list NodeList
	unchanged, err := c.list(ctx, "nodes/", since, maxNodesBytes, func(r *reader, conditional bool) (errs []slurmError, err error) {
		list, errs, err = decodeNodes(r, conditional)
		return errs, err
	})
	if err != nil {
		return NodeList{}, fmt.Errorf("listing Slurm nodes of %s: %w", c, err)
	}
	if unchanged {
		return NodeList{Unchanged: true}, nil
	}
	return list, nil
}

// Node asks about one node. A node that Slurm does not have is Refused: slurmrestd answers 200 with an error without a number.
func (c *Client) Node(ctx context.Context, name string) (*Node, error) {
	var list NodeList
	err := c.get(ctx, "node/"+url.PathEscape(name), func(r *reader) (errs []slurmError, err error) {
		list, errs, err = decodeNodes(r, false)
		if err == nil && len(errs) == 0 && (len(list.Nodes) != 1 || list.Nodes[0].Name != name) {
			err = errOthers
		}
		return errs, err
	})
	if err != nil {
		return nil, fmt.Errorf("asking %s about Slurm node %s: %w", c, name, err)
	}
	return list.Nodes[0], nil
}

var (
	errNoList   = errors.New("the answer has no list")
	errUndated  = errors.New("an empty list without last_update says nothing")
	errNameless = errors.New("a node has no name")
	errOthers   = errors.New("the answer is not about the node that was asked about")
)

// decodeNodes reads an answer to GET nodes. Entries of errors[] are returned as they are, for the caller to classify.
func decodeNodes(r *reader, conditional bool) (NodeList, []slurmError, error) {
	var a answer
	var nodes []*Node
	var seen map[string]struct{}
	found := false
	err := a.decode(r, func(key string) bool {
		if key != "nodes" || r.peek() == 'n' {
			return false
		}
		found, nodes, seen = true, nil, map[string]struct{}{}
		for ok := r.open('['); ok && r.admit(len(nodes), MaxNodes, "nodes"); ok = r.more('[') {
			n := r.node()
			if _, again := seen[n.Name]; again && r.err == nil {
				r.fail("node " + strconv.Quote(shorten(n.Name, 64)) + " is listed twice")
			}
			seen[n.Name] = struct{}{}
			nodes = append(nodes, n)
		}
		return true
	})
	switch {
	case err != nil:
		return NodeList{}, nil, err
	case len(a.errors) > 0:
		return NodeList{}, a.errors, nil
	case !found:
		return NodeList{}, nil, errNoList
	case len(nodes) == 0 && a.lastUpdate.IsZero() && conditional:
		return NodeList{Unchanged: true, Meta: a.meta}, nil, nil
	case len(nodes) == 0 && a.lastUpdate.IsZero():
		return NodeList{}, nil, errUndated
	}
	if _, nameless := seen[""]; nameless {
		return NodeList{}, nil, errNameless
	}
	return NodeList{Updated: a.lastUpdate, Nodes: nodes, Meta: a.meta}, nil, nil
}

func (r *reader) node() *Node {
	n := &Node{FreeMemory: -1}
	if r.peek() == 'n' {
		r.fail("expected '{', found null")
	}
	for ok := r.open('{'); ok; ok = r.more('{') {
		key := r.key()
		switch string(key) {
		case "name":
			n.Name = r.text("")
		case "address":
			n.Address = r.text(n.Name)
		case "hostname":
			n.Hostname = r.text(n.Name)
		case "state":
			n.State = r.list()
		case "reason":
			n.Reason = r.shared()
		case "reason_set_by_user":
			n.ReasonUser = r.shared()
		case "reason_changed_at":
			n.ReasonTime = r.time()
		case "comment":
			n.Comment = r.text("")
		case "extra":
			n.Extra = r.text("")
		case "instance_id":
			n.InstanceID = r.text(n.Name)
		case "instance_type":
			n.InstanceType = r.shared()
		case "features":
			n.Features = r.list()
		case "active_features":
			n.ActiveFeatures = r.list()
		case "partitions":
			n.Partitions = r.list()
		case "reservation":
			n.Reservation = r.shared()
		case "topology":
			n.Topology = r.shared()
		case "version":
			n.Version = r.shared()
		case "boot_time":
			n.BootTime = r.time()
		case "slurmd_start_time":
			n.SlurmdTime = r.time()
		case "tres":
			n.TRES = r.shared()
		case "gres":
			n.Gres = r.shared()
		default:
			r.amount(n, key)
		}
	}
	return n
}

// amount reads a number of a node, and skips other keys.
func (r *reader) amount(n *Node, key []byte) {
	switch string(key) {
	case "cpus":
		n.CPUs = int(r.quantity().number)
	case "alloc_cpus":
		n.AllocCPUs = int(r.quantity().number)
	case "effective_cpus":
		n.EffectiveCPUs = int(r.quantity().number)
	case "real_memory":
		n.RealMemory = r.quantity().number
	case "alloc_memory":
		n.AllocMemory = r.quantity().number
	case "specialized_memory":
		n.SpecializedMemory = r.quantity().number
	case "free_mem":
		if q := r.quantity(); q.set {
			n.FreeMemory = q.number
		}
	default:
		r.skip()
	}
}
