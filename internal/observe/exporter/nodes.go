// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// mebi is what Slurm counts the memory of nodes in.
const mebi = 1 << 20

const (
	gauge     = "gauge"
	counter   = "counter"
	histogram = "histogram"
)

// seenNode is a node with its state.
type seenNode struct {
	*rest.Node
	state node.State
}

// nodes writes the metrics of nodes, which are sorted by name, and what has happened to them. comments are those of the operator.
func (t *text) nodes(list []*rest.Node, comments map[string]node.Comment, history *History) {
	seen := make([]seenNode, len(list))
	for i, n := range list {
		seen[i] = seenNode{n, node.Parse(n.State)}
	}
	t.start("slurm_node_info", gauge, "1 for each Slurm node, with its state and what is known of it.")
	for _, n := range seen {
		t.nodeInfo(n)
	}
	t.start("slurm_node_partition", gauge, "1 for each partition of each Slurm node.")
	for _, n := range seen {
		for _, partition := range n.Partitions {
			t.add(1, label{"node_name", n.Name}, label{"partition", partition})
		}
	}
	t.start("slurm_node_nvlink_instance_group", gauge, "1 for each Slurm node on a machine whose GPUs reach those of others by NVLink.")
	for _, n := range seen {
		if c := comments[n.Name]; c.NVLinkInstanceGroup != "" {
			t.add(1, label{"node_name", n.Name}, label{"instance_id", n.InstanceID}, label{"nvlink_instance_group", c.NVLinkInstanceGroup}, label{"nodeset_name", c.NodeSetName})
		}
	}
	for _, amount := range nodeAmounts {
		t.start(amount.name, gauge, amount.help)
		for _, n := range seen {
			if value, known := amount.of(n.Node); known {
				t.add(value, label{"node_name", n.Name})
			}
		}
	}
	t.history(list, history)
}

// yesOrNo and yesOrNothing are how Soperator's exporter writes flags: the first three in full, the later ones only when they are set.
func yesOrNo(flag bool) string { return strconv.FormatBool(flag) }

func yesOrNothing(flag bool) string {
	if flag {
		return "true"
	}
	return ""
}

// nodeFlags are the labels of flags, of which only those that are set are shown.
//
//nolint:gochecknoglobals // a constant list
var nodeFlags = []struct {
	label string
	flag  node.Word
}{
	{"state_is_completing", node.Completing},
	{"state_is_fail", node.Fail},
	{"state_is_planned", node.Planned},
	{"state_is_not_responding", node.NotResponding},
	{"state_is_invalid", node.Invalid},
	{"state_is_cloud", node.Cloud},
	{"state_is_power_down", node.PowerDown},
	{"state_is_power_drain", node.PowerDrain},
	{"state_is_powered_down", node.PoweredDown},
	{"state_is_powering_down", node.PoweringDown},
	{"state_is_powering_up", node.PoweringUp},
	{"state_is_power_up", node.PowerUp},
}

func (t *text) nodeInfo(n seenNode) {
	state := stateOf(n.state)
	labels := make([]label, 0, 24)
	labels = append(
		labels,
		label{"node_name", n.Name},
		label{"instance_id", n.InstanceID},
		label{"address", n.Address},
		label{"reason", n.Reason},
		label{"comment", n.Comment},
		label{"reservation_name", strings.TrimSpace(n.Reservation)},
		label{"is_unavailable", yesOrNothing(state.unavailable())},
	)
	labels = append(labels, state.labels()...)
	for _, f := range nodeFlags {
		labels = append(labels, label{f.label, yesOrNothing(n.state.Has(f.flag))})
	}
	t.add(1, labels...)
}

func (s nodeState) labels() []label {
	return []label{
		{"state_base", string(s.base)},
		{"state_is_drain", yesOrNo(s.drain)},
		{"state_is_maintenance", yesOrNo(s.maintenance)},
		{"state_is_reserved", yesOrNo(s.reserve)},
	}
}

// nodeAmounts are the metrics of which each node has one number.
//
//nolint:gochecknoglobals // a constant list
var nodeAmounts = []struct {
	name, help string
	of         func(*rest.Node) (value float64, known bool)
}{
	{"slurm_node_cpus_total", "CPUs of the node.", known(func(n *rest.Node) float64 { return float64(n.CPUs) })},
	{"slurm_node_cpus_allocated", "CPUs of the node that jobs have.", known(func(n *rest.Node) float64 { return float64(n.AllocCPUs) })},
	{"slurm_node_cpus_idle", "CPUs of the node that no job has.", known(func(n *rest.Node) float64 { return float64(max(0, n.CPUs-n.AllocCPUs)) })},
	{"slurm_node_cpus_effective", "CPUs of the node that jobs can have.", known(func(n *rest.Node) float64 { return float64(n.EffectiveCPUs) })},
	{"slurm_node_memory_total_bytes", "Memory of the node.", known(func(n *rest.Node) float64 { return float64(n.RealMemory) * mebi })},
	{"slurm_node_memory_allocated_bytes", "Memory of the node that jobs have.", known(func(n *rest.Node) float64 { return float64(n.AllocMemory) * mebi })},
	{"slurm_node_memory_effective_bytes", "Memory of the node that jobs can have.", known(func(n *rest.Node) float64 {
		return float64(max(0, n.RealMemory-n.SpecializedMemory)) * mebi
	})},
	{"slurm_node_memory_free_bytes", "Memory that was free when slurmd was asked last.", func(n *rest.Node) (float64, bool) {
		return float64(n.FreeMemory) * mebi, n.FreeMemory >= 0
	}},
}

func known(of func(*rest.Node) float64) func(*rest.Node) (float64, bool) {
	return func(n *rest.Node) (float64, bool) { return of(n), true }
}

// history writes what has happened to nodes since the exporter runs.
func (t *text) history(list []*rest.Node, history *History) {
	t.start("slurm_node_gpu_seconds_total", counter, "GPUs of the node, times the seconds that it has been in a state since the exporter runs.")
	for _, n := range list {
		if h := history.nodes[n.Name]; h != nil {
			for _, state := range slices.SortedFunc(maps.Keys(h.gpuSeconds), nodeState.compare) {
				t.add(h.gpuSeconds[state], append([]label{{"node_name", n.Name}}, state.labels()...)...)
			}
		}
	}
	t.start("slurm_node_fails_total", counter, "How often the node went down or was drained since the exporter runs, by its state then and the reason.")
	for _, n := range list {
		if h := history.nodes[n.Name]; h != nil {
			for _, f := range slices.SortedFunc(maps.Keys(h.fails), failure.compare) {
				t.add(float64(h.fails[f]), append([]label{{"node_name", n.Name}, {"reason", f.reason}}, f.labels()...)...)
			}
		}
	}
	t.start("slurm_node_unavailability_duration_seconds", histogram, "How long the node was down, or drained without jobs, by times that are over.")
	for _, n := range list {
		if h := history.nodes[n.Name]; h != nil {
			t.durations(n.Name, &h.unavailable)
		}
	}
	t.start("slurm_node_draining_duration_seconds", histogram, "How long the node was drained and had jobs, by times that are over.")
	for _, n := range list {
		if h := history.nodes[n.Name]; h != nil {
			t.durations(n.Name, &h.draining)
		}
	}
}

func (s nodeState) compare(other nodeState) int {
	return cmp.Or(cmp.Compare(s.base, other.base), compareBool(s.drain, other.drain), compareBool(s.maintenance, other.maintenance),
		compareBool(s.reserve, other.reserve))
}

func (f failure) compare(other failure) int {
	return cmp.Or(cmp.Compare(f.reason, other.reason), f.nodeState.compare(other.nodeState))
}

func compareBool(a, b bool) int { return cmp.Compare(strconv.FormatBool(a), strconv.FormatBool(b)) }

// durations writes a histogram, if anything is in it.
func (t *text) durations(name string, d *durations) {
	if d.count == 0 || !t.admit() {
		return
	}
	of := label{"node_name", name}
	for i, bound := range buckets {
		t.sample("_bucket", float64(d.counts[i]), of, label{"le", strconv.FormatFloat(bound, 'g', -1, 64)})
	}
	t.sample("_bucket", float64(d.count), of, label{"le", "+Inf"})
	t.sample("_sum", d.sum, of)
	t.sample("_count", float64(d.count), of)
}
