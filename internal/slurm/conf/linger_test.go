// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPartitionsLinger(t *testing.T) {
	never := func(string) bool { return false }
	worker := func(name string) bool { return strings.HasPrefix(name, "w-") }
	tests := []struct {
		name, before, after, want string
		over, dynamic             func(string) bool
	}{
		{"a partition that stays does not linger", "PartitionName=a Nodes=ALL", "PartitionName=a Nodes=ALL", "PartitionName=a Nodes=ALL", never, never},
		{"a partition that goes takes no new jobs", "PartitionName=a Nodes=ALL Default=YES State=UP\nPartitionName=b Nodes=ALL", "PartitionName=b Nodes=ALL Default=YES",
			"PartitionName=a Nodes=ALL Default=NO State=DRAIN\nPartitionName=b Nodes=ALL Default=YES", never, never},
		{"a partition that lingers goes on to linger", "PartitionName=a Nodes=ALL Default=NO State=DRAIN\nPartitionName=b Nodes=ALL", "PartitionName=b Nodes=ALL",
			"PartitionName=a Nodes=ALL Default=NO State=DRAIN\nPartitionName=b Nodes=ALL", never, never},
		{"a partition lingers until it may go", "PartitionName=a Nodes=ALL Default=NO State=DRAIN\nPartitionName=b Nodes=ALL", "PartitionName=b Nodes=ALL", "PartitionName=b Nodes=ALL",
			func(name string) bool { return name == "a" }, never},
		{"the defaults of a partition that lingers stay as they were", "PartitionName=DEFAULT MaxTime=60 State=UP\nPartitionName=DEFAULT MaxTime=70\nPartitionName=a Nodes=ALL",
			"PartitionName=DEFAULT MaxTime=5\nPartitionName=b Nodes=ALL",
			"PartitionName=a MaxTime=70 State=DRAIN Nodes=ALL Default=NO\nPartitionName=DEFAULT MaxTime=5\nPartitionName=b Nodes=ALL", never, never},
		{"the NodeSets of a partition that lingers stay", "NodeSet=x Feature=x\nNodeSet=y Feature=y\nNodeSet=z Feature=z\nPartitionName=a Nodes=x,y", "NodeSet=y Feature=other",
			"NodeSet=y Feature=other\nNodeSet=x Feature=x\nPartitionName=a Nodes=x,y State=DRAIN Default=NO", never, never},
		{"a partition that lingers has those of its nodes that there are", "NodeName=n[1-3]\nPartitionName=a Nodes=n[1-3],w-[0-1],v-1", "NodeName=n[2-3]",
			"NodeName=n[2-3]\nPartitionName=a Nodes=n[2-3],w-[0-1] State=DRAIN Default=NO", never, worker},
		{"a partition that lingers may have no nodes", "PartitionName=a Nodes=v-[1-2]", "", "PartitionName=a State=DRAIN Default=NO", never, worker},
		{"a NodeSet of a partition that lingers has those of its nodes that there are", "NodeSet=x Nodes=n[1-3]\nPartitionName=a Nodes=x", "NodeName=n2",
			"NodeName=n2\nNodeSet=x Nodes=n2\nPartitionName=a Nodes=x State=DRAIN Default=NO", never, never},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parse := func(text string) *Document {
				d, mistakes := Parse(Slurm, text)
				if len(mistakes) > 0 {
					t.Fatal(mistakes)
				}
				return d
			}
			after := parse(tt.after)
			names := after.Linger(parse(tt.before), tt.over, tt.dynamic)
			if got := statements(t, after); got != tt.want {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, got))
			}
			if want := strings.Count(tt.want, "State=DRAIN"); len(names) != want || want > 0 && !slices.Equal(names, []string{"a"}) {
				t.Errorf("%v linger, want %d", names, want)
			}
			if problems := after.MissingNodes(tt.dynamic); len(problems) > 0 {
				t.Errorf("slurmctld would end: %v", problems)
			}
			again := parse(tt.after)
			again.Linger(after, tt.over, tt.dynamic)
			if diff := cmp.Diff(text(t, after), text(t, again)); diff != "" {
				t.Errorf("it does not stay as it is (-first +second):\n%s", diff)
			}
		})
	}
}

// statements returns the statements of a document, without comments.
func statements(t *testing.T, d *Document) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(text(t, d)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func text(t *testing.T, d *Document) string {
	t.Helper()
	b, err := d.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzLinger(f *testing.F) {
	f.Add("PartitionName=a Nodes=x,n[1-3]\nNodeSet=x Feature=x\n", "PartitionName=b Nodes=ALL\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		before, _ := Parse(Slurm, first)
		after, _ := Parse(Slurm, second)
		if before == nil || after == nil || before.Check() != nil || after.Check() != nil {
			return
		}
		never := func(string) bool { return false }
		wrong := len(after.MissingNodes(never)) + len(after.CheckNames())
		again := after.Clone()
		after.Linger(before, never, never)
		if found := len(after.MissingNodes(never)) + len(after.CheckNames()); found > wrong {
			t.Errorf("slurmctld would end with what lingers: %v %v", after.MissingNodes(never), after.CheckNames())
		}
		again.Linger(after, never, never)
		if diff := cmp.Diff(text(t, after), text(t, again)); diff != "" {
			t.Errorf("it does not stay as it is (-first +second):\n%s", diff)
		}
	})
}
