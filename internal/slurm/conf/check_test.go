// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// running is a slurm.conf that slurmctld starts with.
const running = `ClusterName=demo
SlurmctldHost=ctl
SlurmctldParameters=enable_configless
MaxNodeCount=1024
NodeSet=w Feature=w
PartitionName=w Nodes=w
`

// checked is all that is found in a document.
func checked(d *Document, dynamic func(string) bool) []Problem {
	return slices.Concat(d.CheckValues(NewestRelease), d.CheckNames(), d.CheckPriority(), d.MissingNodes(dynamic))
}

// TestCheckAgreesWithSlurmctld compares with what a slurmctld 26.05.5 did when the lines (separated by |) took the place
// of others of the same key in a slurm.conf with which it started. Nothing that it accepts may be refused.
func TestCheckAgreesWithSlurmctld(t *testing.T) {
	text, err := os.ReadFile("testdata/verdicts.txt")
	if err != nil {
		t.Fatal(err)
	}
	refused, caught := 0, 0
	for line := range strings.Lines(string(text)) {
		verdict, lines, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		d, mistakes := Parse(Slurm, running+strings.ReplaceAll(lines, "|", "\n")+"\n")
		found := len(mistakes) > 0 || len(checked(d, nil)) > 0 || len(d.Unknown("")) > 0
		switch {
		case verdict == "accepted" && found:
			t.Errorf("%s is accepted by slurmctld, and here: %v %v %v", lines, mistakes, checked(d, nil), d.Unknown(""))
		case verdict == "refused":
			refused++
			if found {
				caught++
			} else {
				t.Logf("%s is refused by slurmctld and goes unnoticed", lines)
			}
		}
	}
	t.Logf("%d of %d refusals are foreseen", caught, refused)
	if caught*100 < refused*95 {
		t.Errorf("only %d of %d refusals are foreseen", caught, refused)
	}
}

func TestCheckNamesTheLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a value of another type", "MaxJobCount=many\n", `line 1: MaxJobCount: "many" is not a number`},
		{"a value that is too large", "SlurmctldTimeout=70000\n", `line 1: SlurmctldTimeout: "70000" is greater than 65535`},
		{"a misspelt word", "PreemptMode=SUSPEND,GAMG\n", `line 1: PreemptMode: "GAMG" is not possible; did you mean GANG?`},
		{"a word that is none of the few", "EnforcePartLimits=maybe\n", `line 1: EnforcePartLimits: "maybe" is not possible; it can be ALL, ANY, NO, YES`},
		{"an option of a partition", "NodeSet=a Feature=a\nPartitionName=p Nodes=a MaxTime=1h\n",
			`line 2: PartitionName=p MaxTime: "1h" is not a time; write minutes, hours:minutes:seconds, days-hours:minutes:seconds or UNLIMITED`},
		{"a node of a partition", "PartitionName=p Nodes=a[1-2]\n", "line 1: PartitionName=p Nodes: there is no node and no NodeSet a1; give it a NodeName or NodeSet line, or name another one"},
		{"a partition that stands twice", "PartitionName=p Nodes=ALL\nPartitionName=p Nodes=ALL\n", "line 2: PartitionName: partition p is already on an earlier line"},
		{"a node that stands twice", "NodeName=a[1-3]\nNodeName=a2\n", "line 2: NodeName: node a2 is already on an earlier line"},
		{"usage that is never forgotten", "PriorityDecayHalfLife=0-0\n", "line 1: PriorityDecayHalfLife: is 0, which needs PriorityUsageResetPeriod, such as NONE or MONTHLY"},
		{"usage that an included file may have forgotten", "PriorityDecayHalfLife=0\ninclude more.conf\n", ""},
		{"a time that is too long", "PriorityMaxAge=30000-0\n", `line 1: PriorityMaxAge: "30000-0" is too long; write 24855 days or less, or UNLIMITED`},
		{"a time that has to be one", "PriorityCalcPeriod=UNLIMITED\n", `line 1: PriorityCalcPeriod: "UNLIMITED" is not possible; write a time from a minute to 24855 days`},
		{"a weight that is no number", "PriorityWeightTRES=CPU=1.5,Mem=some\n", `line 1: PriorityWeightTRES: "Mem=some" is not a weight; write a resource and a number, such as CPU=1.0 or Mem=0.25G`},
		{"a port that there is not", "NodeName=a Port=70000\n", `line 1: NodeName=a Port: "70000" is not a port; it is a number from 1 to 65535`},
		{"nodes that register themselves can be named", "PartitionName=p Nodes=dyn-[0-9]\n", ""},
		{"defaults may be repeated", "PartitionName=DEFAULT State=UP\nPartitionName=DEFAULT State=DOWN\nNodeName=DEFAULT CPUs=1\nNodeName=DEFAULT CPUs=2\n", ""},
		{"what an include brings is not known", "include more.conf\nPartitionName=p Nodes=a\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range checked(parsed(t, Slurm, tt.text), func(node string) bool { return strings.HasPrefix(node, "dyn-") }) {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("NodeName=a[1-3],b CPUs=k\nPartitionName=p Nodes=a[2-9] MaxTime=1-2:3\n")
	f.Add("NodeName=a[1-999999999999999999]\nPartitionName=p Nodes=b[1-999999999999999999]\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, _ := Parse(Slurm, text)
		before, errBefore := d.Bytes()
		for _, p := range checked(d, nil) {
			if p.Message == "" {
				t.Errorf("a problem without a message: %+v", p)
			}
		}
		after, errAfter := d.Bytes()
		if string(before) != string(after) || (errBefore == nil) != (errAfter == nil) {
			t.Error("checking changed the document")
		}
	})
}
