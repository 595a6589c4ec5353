// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"slices"
	"strings"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const partitionsPath = "spec.partitionConfiguration"

// partitions adds the NodeSet lines that partitions may refer to, and the partitions.
func (c *composer) partitions(d *document) {
	c.nodeSetLines(d)
	p := &c.spec.PartitionConfiguration
	switch p.ConfigType {
	case nebiusv1.PartitionConfigCustom:
		c.rawPartitions(d, p.RawConfig)
	case nebiusv1.PartitionConfigStructured:
		for _, partition := range p.Partitions {
			c.structuredPartition(d, partition)
		}
	default:
		defaultPartitions(d, c.spec.SlurmNodes.Worker != nil)
	}
}

// nodeSetLines adds a line for each kind of workers. The Controller makes the same lines of the composed NodeSets, and merging keeps
// one of each. But the Controller may learn of a new NodeSet after a new partition, and slurmctld refuses a partition of unknown nodes.
func (c *composer) nodeSetLines(d *document) {
	for _, set := range c.out.Components.NodeSets {
		name := set.SlurmName()
		d.set("NodeSet", name, "spec", conf.Option{Key: "Feature", Value: name})
	}
	for i, feature := range c.spec.WorkerFeatures { //nolint:staticcheck // deprecated, and in effect all the same
		if feature.NodesetName != "" {
			d.set("NodeSet", feature.NodesetName, index("spec.workerFeatures", i)+".nodesetName", conf.Option{Key: "Feature", Value: feature.Name})
		}
	}
}

// defaultPartitions are those of Soperator (docs/contributors/predecessors/soperator-objects.md#partitions): one for users, and one of the
// same nodes for health checks that must neither be seen nor preempted. Its first version, that of slurmNodes.worker, has a third one for
// jobs that give way to all others.
func defaultPartitions(d *document, first bool) {
	partition := func(name, tier, isDefault string, further ...conf.Option) {
		options := []conf.Option{
			{Key: "Nodes", Value: "ALL"}, {Key: "PriorityTier", Value: tier}, {Key: "MaxTime", Value: "INFINITE"},
			{Key: "State", Value: "UP"}, {Key: "OverSubscribe", Value: "YES"}, {Key: "Default", Value: isDefault},
		}
		d.Add("PartitionName", name, append(options, further...)...)
	}
	unseen := []conf.Option{{Key: "PreemptMode", Value: "OFF"}, {Key: "Hidden", Value: "YES"}}
	partition("main", "10", "YES")
	partition("hidden", "10", "NO", unseen...)
	if first {
		partition("background", "1", "NO", unseen...)
	}
}

// rawPartitions takes over the user's lines, each of which must be a partition.
func (c *composer) rawPartitions(d *document, lines []string) {
	for i, line := range lines {
		at := index(partitionsPath+".rawConfig", i)
		parsed, mistakes := conf.Parse(conf.Slurm, line)
		entries := slices.DeleteFunc(parsed.Entries(), func(e conf.Entry) bool { return e.Kind == conf.Comment || e.Kind == conf.Section })
		switch {
		case len(mistakes) > 0:
			c.fail(at, "%s", mistakes[0].Message)
		case len(entries) != 1 || !strings.EqualFold(entries[0].Key, "PartitionName"):
			c.fail(at, "must be one line that starts with PartitionName, as in PartitionName=main Nodes=ALL Default=YES")
		default:
			d.set("PartitionName", entries[0].Value, at, entries[0].Options...)
		}
	}
}

// structuredPartition adds a partition of NodeSets. If none of them exists it has no nodes, so that its jobs wait.
func (c *composer) structuredPartition(d *document, p nebiusv1.Partition) {
	at := partitionsPath + ".partitions[" + p.Name + "]"
	if p.Name == "" || strings.ContainsAny(p.Name, " \t,=#\"'\\") || conf.CheckValue(p.Name) != nil {
		c.fail(at+".name", "must be one word without commas, quotes, equals and comment signs")
		return
	}
	options, err := conf.ParseOptions(p.Config)
	if err != nil {
		c.fail(at+".config", "%v", err)
		return
	}
	given := func(key string) bool {
		return slices.ContainsFunc(options, func(o conf.Option) bool { return strings.EqualFold(o.Key, key) })
	}
	switch {
	case given("PartitionName"):
		c.fail(at+".config", "the name of the partition is given by name; remove PartitionName")
		return
	case given("Nodes") && (p.IsAll || len(p.NodeSetRefs) > 0):
		c.fail(at+".config", "the nodes of the partition are given by isAll and nodeSetRefs; remove Nodes")
		return
	case given("Nodes"):
	case p.IsAll:
		options = append([]conf.Option{{Key: "Nodes", Value: "ALL"}}, options...)
	default:
		options = append([]conf.Option{{Key: "Nodes", Value: strings.Join(c.resolve(p), ",")}}, options...)
	}
	d.set("PartitionName", p.Name, at, options...)
}

// resolve returns the NodeSets of a partition by their names in Slurm, and notes those that give it no nodes.
func (c *composer) resolve(p nebiusv1.Partition) []string {
	var out []string
	for _, ref := range p.NodeSetRefs {
		i := slices.IndexFunc(c.nodeSets, func(s nebiusv1alpha1.NodeSet) bool { return s.Name == ref })
		if i < 0 {
			c.unresolved("partition %s: there is no NodeSet %s of this cluster", p.Name, ref)
			continue
		}
		if replicas(&c.nodeSets[i]) == 0 {
			c.unresolved("partition %s: NodeSet %s has no replicas", p.Name, ref)
		}
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	if len(p.NodeSetRefs) == 0 {
		c.unresolved("partition %s: it names no NodeSet and is not isAll", p.Name)
	}
	return out
}

func (c *composer) unresolved(format string, args ...any) {
	c.out.Unresolved = append(c.out.Unresolved, fmt.Sprintf(format, args...))
}
