// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld_test

import (
	"fmt"
	"strings"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestTheTableOfNodesFollowsTheNodeSets(t *testing.T) {
	statefulSet := func(name string, replicas int) string {
		return fmt.Sprintf(`{metadata: {name: %s, namespace: ns1}, spec: {controllerRef: {name: demo}, replicas: %d}, status: {replicas: 1}}`, name, replicas)
	}
	tests := []struct {
		name, extra string
		sets        []string
		before      int // MaxNodeCount
		nodes       int
		records     map[string]int
		want        int
		problem     string
		doubt       string
	}{
		{name: "a small cluster has the smallest table", sets: []string{statefulSet("a", 5)}, want: 1024},
		{name: "a table is as large as leaves room for a quarter", sets: []string{statefulSet("a", 819)}, want: 1024},
		{name: "a table is larger when one more worker would leave no room for a quarter", sets: []string{statefulSet("a", 819), statefulSet("b", 1)}, want: 2048},
		{name: "a table follows eleven hundred workers", sets: []string{statefulSet("a", 1100)}, want: 2048},
		{name: "workers by Kubernetes nodes are counted when they are known",
			sets: []string{`{metadata: {name: d}, spec: {controllerRef: {name: demo}, scalingMode: DaemonSet, replicas: 1}, status: {desired: 1700}}`}, want: 4096},
		{name: "a table is no larger than slurmctld accepts", sets: []string{statefulSet("a", 60000), statefulSet("b", 6000)}, want: 65536,
			doubt: "spec.extraConf: MaxNodeCount=65536 is less than the 66000 nodes that there are to be, and those that do not fit cannot register; slurmctld accepts no larger one"},
		{name: "a table never becomes smaller", sets: []string{statefulSet("a", 5)}, before: 8192, want: 8192},
		{name: "records of workers that are gone count", sets: []string{statefulSet("a", 5)}, nodes: 900, records: map[string]int{"a": 5, "gone": 895}, want: 2048},
		{name: "records of workers that are gone come in addition to workers to be", sets: []string{statefulSet("a", 500)}, nodes: 500, records: map[string]int{"gone": 500}, want: 2048},
		{name: "a worker and its record count once", sets: []string{statefulSet("a", 700)}, nodes: 700, records: map[string]int{"a": 700}, want: 1024},
		{name: "the user's own size counts", extra: "MaxNodeCount=3000", sets: []string{statefulSet("a", 5)}, want: 3000},
		{name: "the user's own size is doubtful when it will not do", extra: "MaxNodeCount=64", sets: []string{statefulSet("a", 65)}, want: 64,
			doubt: "spec.extraConf: MaxNodeCount=64 is less than the 65 nodes that there are to be, and those that do not fit cannot register"},
		{name: "the user's own size is refused when slurmctld would forget nodes", extra: "MaxNodeCount=64", sets: []string{statefulSet("a", 5)}, nodes: 65, want: 64,
			problem: "spec.extraConf: MaxNodeCount=64 is less than the 65 nodes that Slurm has, and slurmctld would forget those that do not fit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
			in.Controller.Spec.ExtraConf = tt.extra
			in.MaxNodeCount, in.SlurmNodes, in.Records = tt.before, tt.nodes, tt.records
			for _, set := range tt.sets {
				in.NodeSets = append(in.NodeSets, *manifest.Parse[slinkyv1beta1.NodeSet](t, set))
			}
			out := slurmctld.Render(in)
			files := map[string]string{"slurm.conf": configOf(t, out.Objects)}
			if want := fmt.Sprintf("\nMaxNodeCount=%d\n", tt.want); !strings.Contains(files["slurm.conf"], want) {
				t.Errorf("%q is not in\n%s", want, files["slurm.conf"])
			}
			if got := slurmctld.TableOfNodes(slurmctld.ReadLive(files)); tt.extra == "" && got != tt.want {
				t.Errorf("%d is read back, want %d", got, tt.want)
			}
			if got := out.Problems.Message(); !strings.HasPrefix(got, tt.problem) || tt.problem == "" && got != "" {
				t.Errorf("the problems are %q, want %q", got, tt.problem)
			}
			if got := out.Doubts.Message(); !strings.HasPrefix(got, tt.doubt) || tt.doubt == "" && got != "" {
				t.Errorf("the doubts are %q, want %q", got, tt.doubt)
			}
		})
	}
}
