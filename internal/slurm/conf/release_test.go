// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

func TestUnknownKnowsWhatAReleaseHas(t *testing.T) {
	const text = `Fooo=1
CacheGroups=0
metricstype=metrics/openmetrics
AccountingStorageLoc=/x
PartitionName=p Nodes=ALL topology=t MaxTime=1
NodeName=n GresConf=Name=gpu
NodeSet=s Topology=t
`
	always := []string{"line 1: Fooo: slurm.conf has no key of this name that the operator knows", "line 2: CacheGroups: slurm.conf has no key of this name that the operator knows",
		"line 7: NodeSet=s Topology: NodeSet has no option of this name that the operator knows"}
	older := []string{"line 3: metricstype: Slurm 24.11 does not have this, 26.05 does (newer)",
		"line 5: PartitionName=p topology: Slurm 24.11 does not have this, 26.05 does (newer)",
		"line 6: NodeName=n GresConf: Slurm 24.11 does not have this, 26.05 does (newer)"}
	newer := []string{"line 4: AccountingStorageLoc: Slurm 26.05 no longer has this; remove it"}
	for _, tt := range []struct {
		name, release string
		want          []string
	}{
		{"of any release only what none has", "", nil},
		{"24.11 lacks what came later", "24.11.5", older},
		{"a release that was not tried has what one beside it has", "25.11.2", nil},
		{"26.05 lacks what has gone", "26.05", newer},
		{"what has gone does not come back", "27.05", newer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, u := range parsed(t, Slurm, text).Unknown(tt.release) {
				line := u.Error()
				if u.Newer {
					line += " (newer)"
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(always, tt.want))), got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSlurmctldKnowsTheSameKeys has the slurmctlds of both releases read all keys that are known here, and some that are not. Each has
// to end with the keys unknown in its release, and with no others.
func TestSlurmctldKnowsTheSameKeys(t *testing.T) {
	const nobodys = " Fooo CacheGroups CheckpointType JobCheckpointDir"
	for _, root := range realslurm.Roots(t) {
		box := realslurm.Open(t, root, "")
		for _, tt := range []struct{ name, line, keys string }{
			{"keys", "", keysOf(Slurm)},
			{"options of PartitionName", "PartitionName", Slurm.optionsOf("PartitionName")},
			{"options of NodeName", "NodeName", Slurm.optionsOf("NodeName")},
			{"options of NodeSet", "NodeSet", Slurm.optionsOf("NodeSet")},
		} {
			t.Run(root.Release+" "+tt.name, func(t *testing.T) {
				text, lines := &strings.Builder{}, &strings.Builder{}
				for key := range strings.FieldsSeq(tt.keys + nobodys) {
					switch {
					case strings.EqualFold(key, tt.line), key == "FrontendName" && root.Release == oldestRelease:
						// The latter immediately ends a slurmctld that was built without it, and no other.
						continue
					case tt.line != "":
						lines.WriteString(tt.line + "=x" + key + " ")
					}
					lines.WriteString(key + "=1\n")
				}
				text.WriteString(mustWrite(t, minimal()) + "BcastExclude=here\n" + lines.String())
				out := tried(t, box, text.String())
				var ended, unknown []string
				for _, found := range regexp.MustCompile(`unrecognized key: (\S+)`).FindAllStringSubmatch(out, -1) {
					ended = append(ended, strings.ToLower(found[1]))
				}
				for _, u := range parsed(t, Slurm, lines.String()).Unknown(root.Release) {
					fields := strings.Fields(u.Key)
					unknown = append(unknown, strings.ToLower(fields[len(fields)-1]))
				}
				slices.Sort(ended)
				slices.Sort(unknown)
				if diff := cmp.Diff(ended, unknown); diff != "" {
					t.Errorf("slurmctld ends with (-), and unknown here are (+):\n%s", diff)
				}
			})
		}
	}
}
