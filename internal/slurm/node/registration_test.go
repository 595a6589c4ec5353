// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"
)

func TestReasonsOfARegistration(t *testing.T) {
	for _, tt := range []struct {
		name, text, by string
		want           bool
	}{
		{"a reason for less memory is one of a registration", "Low RealMemory (reported:500 < 100.00% of configured:600)", "slurm", true},
		{"a reason for fewer CPUs is one of a registration", "Low socket*core*thread count, Low CPUs", "slurm", true},
		{"a reason for no GPUs is one of a registration", "gres/gpu count reported lower than configured (0 < 2)", "slurm", true},
		{"a reason for no GPUs of a type is one of a registration", "gres/gpu:a100 count too low (0 < 2)", "slurm", true},
		{"a reason for another place in the topology is one of a registration", "Failed to set topology 'topo-switch:s9,topo-block:b2'", "slurm", true},
		{"a reason for less room for files is one of a registration", "Low TmpDisk", "slurm", true},
		{"a reason for less of all is one of a registration", "gres/gpu count reported lower than configured (0 < 2), Low socket*core*thread count, Low CPUs, Low RealMemory (reported:98 < 100.00% of configured:99)", "slurm", true},
		{"a reason for other reserved cores is one of a registration", "CoreSpec differ", "slurm", true},
		{"a reason of a node that was silent afterwards is one of a registration", "Low CPUs : Not responding", "slurm", true},
		{"the same words of a person are not a reason of a registration", "Low CPUs", "root", false},
		{"the same words of nobody knows whom are not a reason of a registration", "Low CPUs", "", false},
		{"a person's words behind those of slurmctld are not a reason of a registration", "Low CPUs, ask Bob", "slurm", false},
		{"a person's words before those of slurmctld are not a reason of a registration", "ask Bob, Low CPUs", "slurm", false},
		{"another reason of slurmctld is not one of a registration", "Kill task failed", "slurm", false},
		{"silence alone is not a reason of a registration", "Not responding", "slurm", false},
		{"another word about resources is not a reason of a registration", "gres/gpu is broken", "slurm", false},
		{"an empty reason is not one of a registration", "", "slurm", false},
		{"a reason of ours is not one of a registration", "slurm-operator: Node was cordoned", "slurm", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (Reason{Text: tt.text, SetBy: tt.by}).OfRegistration(); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestTheNoteOfADrain(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	drain := Reason{Text: "[node_problem] gpu", SetBy: "root", At: at}
	c := Comment{PodName: "p"}.Noting(drain, "m")
	for _, tt := range []struct {
		name string
		of   Reason
		want bool
	}{
		{"a note is about the drain that was noted", drain, true},
		{"a note is about the drain that was noted, by whatever clock of the same time", Reason{Text: drain.Text, At: at.In(time.FixedZone("", 3600))}, true},
		{"a note is about a drain when slurmd was silent since, which has another time", Reason{Text: drain.Text + " : Not responding", At: at.Add(time.Hour)}, true},
		{"a note is not about a drain for the same reason at another time", Reason{Text: drain.Text, At: at.Add(time.Second)}, false},
		{"a note is not about another drain of the same time", Reason{Text: "bad disk", At: at}, false},
		{"a note is not about another drain that was silent", Reason{Text: "bad disk : Not responding", At: at}, false},
		{"a note is not about a drain without a time", Reason{Text: drain.Text}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := c.Notes(tt.of); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
	if (Comment{PodName: "p"}).Notes(Reason{At: at}) {
		t.Error("no note is one about a drain without a reason")
	}
	if got := (Comment{PodName: "q"}).WithNote(c); got.PodName != "q" || !got.Notes(drain) || got.DrainedOn != "m" {
		t.Errorf("%+v", got)
	}
}
