// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"
)

// TestDefaultPartitions are those of both versions of Soperator: docs/contributors/predecessors/soperator-objects.md#partitions.
func TestDefaultPartitions(t *testing.T) {
	const (
		main       = "PartitionName=main Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP OverSubscribe=YES Default=YES"
		hidden     = "PartitionName=hidden Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP OverSubscribe=YES Default=NO PreemptMode=OFF Hidden=YES"
		background = "PartitionName=background Nodes=ALL PriorityTier=1 MaxTime=INFINITE State=UP OverSubscribe=YES Default=NO PreemptMode=OFF Hidden=YES"
	)
	for spec, want := range map[string][]string{
		`{}`:                                {main, hidden},
		`{slurmNodes: {worker: {size: 1}}}`: {main, hidden, background},
	} {
		out := Cluster(load(t).cluster(t, spec))
		if len(out.Problems) > 0 {
			t.Fatal(out.Problems.Message())
		}
		var got []string
		for line := range strings.Lines(renderedConf(t, out)) {
			if strings.HasPrefix(line, "PartitionName=") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: partitions are %q, want %q", spec, got, want)
		}
	}
}
