// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld_test

import (
	"slices"
	"strings"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestWhatGoesFromAnIncludedFileStaysUntilNoJobNeedsIt(t *testing.T) {
	const (
		partitions = "PartitionName=old Nodes=a MaxTime=60\nPartitionName=new Nodes=ALL\n"
		include    = "include partitions.conf\ninclude nodes.conf\n"
	)
	in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
	files := func(nodes, partitions string) []slurmctld.File {
		return []slurmctld.File{{ConfigMap: "more", Name: "partitions.conf", Content: partitions}, {ConfigMap: "more", Name: "nodes.conf", Content: nodes}}
	}
	in.Files.Config = files("NodeName=a,b CPUs=4\n", partitions)
	out, first := lingering(t, in, include)
	if len(out.EditWaits.Partitions)+len(out.EditWaits.Nodes)+len(out.Doubts) > 0 || strings.Contains(first, "\ninclude") || !strings.Contains(first, "\n"+partitions) {
		t.Errorf("%v, %v linger, with %v, in\n%s", out.EditWaits.Partitions, out.EditWaits.Nodes, out.Doubts, first)
	}

	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": first})
	in.Files.Config = files("NodeName=b CPUs=4\n", "PartitionName=new Nodes=ALL\n")
	out, second := lingering(t, in, include)
	if !slices.Equal(out.EditWaits.Partitions, []string{"old"}) || !slices.Equal(out.EditWaits.Nodes, []string{"a"}) ||
		!strings.Contains(second, "\nPartitionName=old Nodes=a MaxTime=60 State=DRAIN Default=NO\n") || !strings.Contains(second, "\nNodeName=a CPUs=4 State=DRAIN ") {
		t.Errorf("%v and %v linger in\n%s", out.EditWaits.Partitions, out.EditWaits.Nodes, second)
	}
	if out, third := lingering(t, in, ""); !slices.Equal(out.EditWaits.Partitions, []string{"old", "new"}) || len(out.EditWaits.Nodes) != 2 {
		t.Errorf("without the files %v and %v linger in\n%s", out.EditWaits.Partitions, out.EditWaits.Nodes, third)
	}
	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": second})
	if _, third := lingering(t, in, include); third != second {
		t.Errorf("it does not stay as it is:\n%s\n%s", second, third)
	}
	in.Files.Config = files("NodeName=a,b CPUs=4\n", partitions)
	if out, third := lingering(t, in, include); len(out.EditWaits.Partitions)+len(out.EditWaits.Nodes) > 0 || third != first {
		t.Errorf("%v and %v linger after the edit was taken back:\n%s", out.EditWaits.Partitions, out.EditWaits.Nodes, third)
	}
}

func TestFilesThatAreIncludedAndNotKnownAreTold(t *testing.T) {
	const ends = ". If the line of a partition or node is removed from that file, slurmctld ends the jobs that need it"
	large := strings.Repeat("NodeName=a-long-name-of-a-node-that-takes-much-room CPUs=4\n", 1<<15)
	tests := []struct {
		name, extraConf, content, want string
	}{
		{"a file of a ConfigMap is known", "include /etc/slurm/more.conf", "KillWait=31\n", ""},
		{"a file elsewhere is not known", "include /shared/more.conf", "", "spec.extraConf: include /shared/more.conf: the operator does not know what is in it" + ends},
		{"a file that a known one includes is not known", "include more.conf", "include /shared/more.conf\n",
			"spec.extraConf: include /shared/more.conf: the operator does not know what is in it" + ends},
		{"a file that is too large stays included", "include more.conf", large, "spec.extraConf: include more.conf: slurm.conf has no room for its lines" + ends},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
			in.Files.Config = []slurmctld.File{{ConfigMap: "more", Name: "more.conf", Content: tt.content}}
			out, text := lingering(t, in, tt.extraConf)
			if got := out.Doubts.Message(); got != tt.want || strings.Contains(text, "\ninclude ") != (tt.want != "") {
				t.Errorf("it says %q, want %q, of\n%.2000s", got, tt.want, text)
			}
		})
	}
}

func TestWhatMovesIntoAFileThatStaysIncludedIsNotGone(t *testing.T) {
	const lines = "NodeName=a CPUs=4\nPartitionName=old Nodes=a\n"
	in := slurmctld.Input{Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)}
	_, first := lingering(t, in, lines)
	in.Live = slurmctld.ReadLive(map[string]string{"slurm.conf": first})
	in.Files.Config = []slurmctld.File{{ConfigMap: "more", Name: "more.conf", Content: lines + strings.Repeat("# much\n", 1<<17)}}
	if out, text := lingering(t, in, "include more.conf\n"); len(out.EditWaits.Partitions)+len(out.EditWaits.Nodes) > 0 || !strings.Contains(text, "\ninclude more.conf\n") {
		t.Errorf("%v and %v linger in\n%.2000s", out.EditWaits.Partitions, out.EditWaits.Nodes, text)
	}
}
