// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
)

// behind is a worker of slurmNodes.worker behind a leaf and a spine.
func behind(name, leaf, spine string) ObservedWorker {
	return ObservedWorker{Name: name, NodeSet: "demo-worker", Location: topology.Location{Block: leaf, Switches: []string{leaf, spine}}}
}

// topologyOf is the topology.conf of a composed cluster, without the comment at its beginning, and its slurm.conf.
func topologyOf(t *testing.T, out Output) (tree, slurmConf string) {
	t.Helper()
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	for _, o := range out.Objects {
		if files, ok := o.(*corev1.ConfigMap); ok && files.Name == "demo-slurm-configs" {
			tree = files.Data["topology.conf"]
		}
	}
	comment, rest, _ := strings.Cut(tree, "\n")
	if tree != "" && !strings.HasPrefix(comment, "# ") {
		t.Errorf("the first line is %q", comment)
	}
	return rest, out.Components.Controller.Spec.ExtraConf
}

func TestTopologyHasEveryWorker(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct {
		spec     string
		nodeSets []string
		workers  []ObservedWorker
		want     string
		plugin   string
	}{
		"a tree, with workers that are not there yet": {
			spec: `{slurmNodes: {worker: {size: 4}}}`, workers: []ObservedWorker{behind("worker-1", "l2", "s"), behind("worker-0", "l1", "s")}, plugin: "topology/tree",
			want: "SwitchName=l1 Nodes=worker-0\nSwitchName=l2 Nodes=worker-1\nSwitchName=root Switches=root.unknown,s\nSwitchName=root.unknown Nodes=worker-[2-3]\nSwitchName=s Switches=l[1-2]\n",
		},
		"a worker that is to go": {
			spec: `{slurmNodes: {worker: {size: 1}}}`, workers: []ObservedWorker{behind("worker-0", "l1", "s"), behind("worker-7", "l1", "s")}, plugin: "topology/tree",
			want: "SwitchName=l1 Nodes=worker-[0,7]\nSwitchName=root Switches=s\nSwitchName=s Switches=l1\n",
		},
		"fabrics": {
			spec: `{}`, nodeSets: []string{"cpu {replicas: 2}", "gpu {replicas: 2, topology: {fabric: ib}}"}, plugin: "topology/tree",
			workers: []ObservedWorker{{Name: "gpu-5", NodeSet: "demo-gpu", Location: topology.Location{Switches: []string{"l1"}}}},
			want: "SwitchName=ib Switches=ib.unknown,l1\nSwitchName=ib.unknown Nodes=gpu-[0-1]\nSwitchName=l1 Nodes=gpu-5\n" +
				"SwitchName=root Switches=root.unknown\nSwitchName=root.unknown Nodes=cpu-[0-1]\n",
		},
		"a network of which nobody knows anything": {spec: `{slurmNodes: {worker: {size: 4}}}`, workers: []ObservedWorker{{Name: "worker-0"}}, want: topology.NoTree},
		"a network of which nobody knows anything, with a tree in the user's slurm.conf": {
			spec: `{customSlurmConfig: TopologyPlugin=topology/tree, slurmNodes: {worker: {size: 1}}}`, workers: []ObservedWorker{{Name: "worker-0"}},
			plugin: "topology/tree", want: "SwitchName=root Switches=root.unknown\nSwitchName=root.unknown Nodes=worker-0\n",
		},
		"blocks":                                {spec: `{slurmConfig: {topologyPlugin: topology/block}, topology: {blockSize: 4}, slurmNodes: {worker: {size: 2}}}`, workers: []ObservedWorker{behind("worker-0", "b1", "s")}, plugin: "topology/block", want: "BlockName=b1 Nodes=worker-0\nBlockName=unknown Nodes=worker-1\nBlockSizes=4\n"},
		"blocks of which nobody knows anything": {spec: `{slurmConfig: {topologyPlugin: topology/block, topologyBlockSize: 3}, slurmNodes: {worker: {size: 2}}}`, plugin: "topology/block", want: "BlockName=unknown Nodes=worker-[0-1]\nBlockSizes=3\n"},
		"blocks on 24.11":                       {spec: `{slurmConfig: {topologyPlugin: topology/block}, slurmNodes: {controller: {slurmctld: {image: "slurmctld:24.11.5"}}, worker: {size: 2}}}`},
		"a cluster without workers":             {spec: `{slurmConfig: {topologyPlugin: topology/block}}`, want: topology.NoBlocks},
		"another topology":                      {spec: `{slurmConfig: {topologyPlugin: topology/default}, slurmNodes: {worker: {size: 1}}}`, workers: []ObservedWorker{behind("worker-0", "l1", "s")}, plugin: "topology/default"},
		"the user's own topology in slurm.conf": {spec: `{customSlurmConfig: TopologyPlugin=topology/flat, slurmNodes: {worker: {size: 1}}}`, workers: []ObservedWorker{behind("worker-0", "l1", "s")}, plugin: "topology/flat"},
		"the user's slurm.conf asks for a tree where the network is known": {spec: `{customSlurmConfig: TopologyPlugin=topology/tree, slurmNodes: {worker: {size: 1}}}`, workers: []ObservedWorker{behind("worker-0", "l1", "s")}, plugin: "topology/tree", want: "SwitchName=l1 Nodes=worker-0\nSwitchName=root Switches=s\nSwitchName=s Switches=l1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.cluster(t, test.spec, test.nodeSets...)
			in.Observed.Workers = test.workers
			tree, slurmConf := topologyOf(t, Cluster(in))
			if diff := cmp.Diff(test.want, tree); diff != "" {
				t.Error(diff)
			}
			_, after, _ := strings.Cut(slurmConf, "TopologyPlugin=")
			if plugin, _, _ := strings.Cut(after, "\n"); plugin != test.plugin {
				t.Errorf("TopologyPlugin is %q, want %q", plugin, test.plugin)
			}
		})
	}
}

// Slurm takes a dynamic node into its topology when it reads the file, and not when the node registers.
func TestTopologyIsReadAgainWhenANodeRegisters(t *testing.T) {
	d := load(t)
	comment := func(pods ...types.UID) string {
		in := d.cluster(t, `{slurmNodes: {worker: {size: 2}}}`)
		for i, pod := range pods {
			w := behind(fmt.Sprintf("worker-%d", i), "l1", "s")
			w.Registered = pod
			in.Observed.Workers = append(in.Observed.Workers, w)
		}
		for _, o := range Cluster(in).Objects {
			if files, ok := o.(*corev1.ConfigMap); ok && files.Data["topology.conf"] != "" {
				first, _, _ := strings.Cut(files.Data["topology.conf"], "\n")
				return first
			}
		}
		t.Fatal("there is no topology.conf")
		return ""
	}
	seen := map[string]bool{}
	for _, line := range []string{comment("", ""), comment("a", ""), comment("", "a"), comment("a", "b"), comment("c", "b")} {
		if seen[line] {
			t.Errorf("%s is there twice", line)
		}
		seen[line] = true
	}
}

// BenchmarkTopology10000 composes a cluster of 10,000 workers whose places in the network are known, as each change of one does.
func BenchmarkTopology10000(b *testing.B) {
	in := load(b).cluster(b, `{slurmNodes: {worker: {size: 10000}}}`)
	for i := range 10000 {
		w := behind(fmt.Sprintf("worker-%d", i), fmt.Sprintf("leaf%d", i/16), fmt.Sprintf("spine%d", i/512))
		w.Registered = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
		in.Observed.Workers = append(in.Observed.Workers, w)
	}
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if out := Cluster(in); len(out.Problems) > 0 {
			b.Fatal(out.Problems.Message())
		}
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processorTime is the processor time of this process, to which other programs of a busy machine do not add.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
