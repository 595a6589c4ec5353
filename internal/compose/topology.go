// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
)

// The topologies that need a topology.conf, without which slurmctld does not start.
const (
	topologyTree  = "topology/tree"
	topologyBlock = "topology/block"
)

// topologyFlat is what Slurm does by itself. It is not written, since 24.11 has another name for it and ends with this one.
const topologyFlat = "topology/flat"

// defaultFabric is the API's default of a NodeSet's spec.topology.fabric.
const defaultFabric = "root"

// ObservedWorker is a worker that exists, as far as the topology is concerned.
type ObservedWorker struct {
	// Name is that of its node in Slurm, and NodeSet that of its composed NodeSet.
	Name, NodeSet string
	// Registered is the pod that registered the node; empty while Slurm does not have it.
	Registered types.UID
	// Location is that of the Kubernetes node on which it runs.
	Location topology.Location
}

// FollowsNetwork reports whether a SlurmCluster depends on where its workers are in the network: Observed.Workers.
func FollowsNetwork(cluster *nebiusv1.SlurmCluster) bool {
	c := &composer{spec: &cluster.Spec}
	return c.followsNetwork()
}

func (c *composer) followsNetwork() bool {
	switch value(c.spec.SlurmConfig.TopologyPlugin) {
	case topologyTree:
		return true
	case topologyBlock:
		return !c.refusesBlocks()
	}
	return false
}

// refusesBlocks reports whether slurmctld ends at once if a block has fewer registered nodes than a block is to have, as all blocks
// have when a cluster starts.
func (c *composer) refusesBlocks() bool { return c.isRelease2411() }

// isRelease2411 reports whether slurmctld has release 24.11, by the name of its image.
func (c *composer) isRelease2411() bool {
	return strings.Contains(c.spec.SlurmNodes.Controller.Slurmctld.Image, "24.11")
}

// topologyConf returns topology.conf(5) with all workers, also those that are not there yet; empty where slurmctld is to read none.
// flat is true if Slurm is to take the network as flat all the same. A tree without a known switch is flat: a line for it would cost a
// reconfiguration with each new worker.
//
// The file is there while the network is flat. slurm.conf is in another object, and one of the two may reach slurmctld before the
// other. With a tree in slurm.conf and without the file, slurmctld waits for a minute, and ends.
func (c *composer) topologyConf(workers []ObservedWorker) (text string, flat bool) {
	plugin := value(c.spec.SlurmConfig.TopologyPlugin)
	own, given := c.custom.Document.Get("TopologyPlugin")
	if !c.followsNetwork() || given && own != plugin {
		return "", false
	}
	nodes := c.slurmNodes(workers)
	tree := plugin == topologyTree
	switch {
	case len(nodes) > 0 && tree && (given || !isFlat(nodes)):
		return registered(workers) + topology.Tree(nodes), false
	case len(nodes) > 0 && !tree:
		return registered(workers) + topology.Blocks(nodes, int(cmp.Or(c.spec.BlockSize(), defaultBlockSize))), false
	case tree:
		return flatNetwork + topology.NoTree, true
	}
	return flatNetwork + topology.NoBlocks, true
}

// flatNetwork is the comment at the beginning of a topology.conf that is not read.
const flatNetwork = "# the network is flat: slurm.conf names no topology, and this file is not read\n"

// registered is a comment that changes when a node registers. slurmctld assigns nodes to switches when it reads the file: a dynamic
// node that registers later is nowhere in the network, and 24.11 gives it no job.
func registered(workers []ObservedWorker) string {
	var lines []string
	for _, w := range workers {
		if w.Registered != "" {
			lines = append(lines, w.Name+" "+string(w.Registered))
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return fmt.Sprintf("# %d nodes registered, digest %.6x\n", len(lines), sum)
}

// slurmNodes are the nodes of all workers, those that the spec asks for and those that exist.
func (c *composer) slurmNodes(workers []ObservedWorker) []topology.Node {
	fabrics := map[string]string{}
	byName := map[string]topology.Node{}
	add := func(nodeSet, name, fabric string, count int32) {
		fabric = cmp.Or(fabric, defaultFabric)
		fabrics[nodeSet] = fabric
		for i := range min(count, maxNodes) {
			name := name + "-" + strconv.Itoa(int(i))
			byName[name] = topology.Node{Name: name, Fabric: fabric}
		}
	}
	if worker := c.spec.SlurmNodes.Worker; worker != nil {
		add(c.cluster.WorkerNodeSetName(), workerName, "", worker.Size)
	}
	for i := range c.nodeSets {
		set := &c.nodeSets[i]
		add(NodeSetName(c.cluster.Name, set.Name), set.Name, set.Spec.Topology.Fabric, replicas(set))
	}
	for _, w := range workers {
		byName[w.Name] = topology.Node{Name: w.Name, Fabric: cmp.Or(fabrics[w.NodeSet], defaultFabric), Location: w.Location}
	}
	out := make([]topology.Node, 0, len(byName))
	for _, n := range byName {
		out = append(out, n)
	}
	return out
}

// isFlat reports whether no node has a known switch or a fabric.
func isFlat(nodes []topology.Node) bool {
	return !slices.ContainsFunc(nodes, func(n topology.Node) bool { return len(n.Location.Switches) > 0 || n.Fabric != defaultFabric })
}

// topologyKeys leaves the default, topology/tree, out where the network is flat.
func (c *composer) topologyKeys(d *document, docs documents) {
	plugin, param := value(c.spec.SlurmConfig.TopologyPlugin), value(c.spec.SlurmConfig.TopologyParam)
	if docs.flat || (plugin == topologyTree || plugin == topologyBlock) && docs.topology == "" || plugin == topologyFlat {
		plugin = ""
	}
	d.text("TopologyPlugin", plugin, "spec.slurmConfig.topologyPlugin")
	if param != "SwitchAsNodeRank" || plugin != "" {
		d.text("TopologyParam", param, "spec.slurmConfig.topologyParam")
	}
}

// ineffectiveTopology lists fields that count only with another topology.
func (c *composer) ineffectiveTopology() {
	s := &c.spec.SlurmConfig
	plugin := value(s.TopologyPlugin)
	blocks := plugin == topologyBlock && !c.refusesBlocks()
	c.ignore(plugin == topologyBlock && !blocks, "spec.slurmConfig.topologyPlugin (topology/block with Slurm 24.11, which does not start with it)")
	older, newer := s.TopologyBlockSize, c.spec.Topology.BlockSize //nolint:staticcheck // deprecated, and in effect all the same
	c.ignore(older != 0 && older != defaultBlockSize && (!blocks || newer > 0), "spec.slurmConfig.topologyBlockSize (without topology/block, or beside spec.topology.blockSize)")
	c.ignore(newer != 0 && newer != defaultBlockSize && !blocks, "spec.topology.blockSize (without topology/block)")
}
