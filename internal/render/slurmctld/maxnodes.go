// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"maps"
	"strconv"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const (
	maxNodeCount = "MaxNodeCount"
	// minNodeCount is the size of slurmctld's table of nodes in a small cluster.
	minNodeCount = 1024
	// mostNodeCount is the largest size that slurmctld accepts; with a larger one 24.11 and 26.05 end.
	mostNodeCount = 65536
)

// tableOfNodes is the smallest size of slurmctld's table of nodes: a power of two with room for a quarter more nodes than there will
// be. It never becomes smaller: a slurmctld that reads a size below its number of nodes silently forgets the others.
func tableOfNodes(in Input) int {
	size := max(minNodeCount, in.MaxNodeCount)
	for need := nodesToBe(in); 4*size < 5*need && size < mostNodeCount; {
		size *= 2
	}
	return size
}

// nodesToBe is the number of nodes that slurmctld will have. It keeps the records of workers that are gone.
func nodesToBe(in Input) int {
	nodes, records := 0, maps.Clone(in.Records)
	for i := range in.NodeSets {
		n := &in.NodeSets[i]
		nodes += max(workersOf(n), records[n.Name])
		delete(records, n.Name)
	}
	for _, gone := range records {
		nodes += gone
	}
	return max(nodes, in.SlurmNodes)
}

// workersOf is the number of workers that a NodeSet has or is to have.
func workersOf(n *slinkyv1beta1.NodeSet) int {
	wanted := n.Status.Desired
	if n.ScalingMode() == slinkyv1beta1.ScalingModeStatefulSet {
		wanted = n.Replicas()
	}
	return int(max(wanted, n.Status.Replicas))
}

// checkTable looks at the size that the user gives. One smaller than the number of nodes that slurmctld has is refused. One too
// small for the workers to come is doubtful.
func (p *preflight) checkTable(d *conf.Document) {
	value, _ := d.Get(maxNodeCount)
	size, err := strconv.Atoi(value)
	if err != nil {
		return // CheckValues reports that
	}
	out := "leave it out, and the operator derives it from the NodeSets"
	if size == mostNodeCount {
		out = "slurmctld accepts no larger one"
	}
	switch need := nodesToBe(p.in); {
	case size < p.in.SlurmNodes:
		p.problems = append(p.problems, problem.Errorf(p.user.ExtraConf.Path, slinkyv1beta1.ReasonTooManyNodes,
			"MaxNodeCount=%d is less than the %d nodes that Slurm has, and slurmctld would forget those that do not fit; %s", size, p.in.SlurmNodes, out))
	case size < need:
		p.doubts = append(p.doubts, problem.Errorf(p.user.ExtraConf.Path, slinkyv1beta1.ReasonTooManyNodes,
			"MaxNodeCount=%d is less than the %d nodes that there are to be, and those that do not fit cannot register; %s", size, need, out))
	}
}

// TableOfNodes reads the size that tableOfNodes has set from the present slurm.conf; 0 when there is none, or when somebody else has
// set the size.
func TableOfNodes(live *conf.Document) int {
	if live == nil {
		return 0
	}
	value, _ := live.Get(maxNodeCount)
	size, err := strconv.Atoi(value)
	if err != nil || size < minNodeCount || size&(size-1) != 0 {
		return 0
	}
	return size
}
