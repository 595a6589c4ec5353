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
		{"less memory", "Low RealMemory (reported:500 < 100.00% of configured:600)", "slurm", true},
		{"fewer CPUs", "Low socket*core*thread count, Low CPUs", "slurm", true},
		{"no GPUs", "gres/gpu count reported lower than configured (0 < 2)", "slurm", true},
		{"no GPUs of a type", "gres/gpu:a100 count too low (0 < 2)", "slurm", true},
		{"another place in the topology", "Failed to set topology 'topo-switch:s9,topo-block:b2'", "slurm", true},
		{"less room for files", "Low TmpDisk", "slurm", true},
		{"less of all", "gres/gpu count reported lower than configured (0 < 2), Low socket*core*thread count, Low CPUs, Low RealMemory (reported:98 < 100.00% of configured:99)", "slurm", true},
		{"other reserved cores", "CoreSpec differ", "slurm", true},
		{"one that was silent afterwards", "Low CPUs : Not responding", "slurm", true},
		{"the same words of a person", "Low CPUs", "root", false},
		{"or of nobody knows whom", "Low CPUs", "", false},
		{"a person's words behind them", "Low CPUs, ask Bob", "slurm", false},
		{"a person's words before them", "ask Bob, Low CPUs", "slurm", false},
		{"another reason of slurmctld", "Kill task failed", "slurm", false},
		{"silence alone", "Not responding", "slurm", false},
		{"another word about resources", "gres/gpu is broken", "slurm", false},
		{"none", "", "slurm", false},
		{"ours", "slurm-operator: Node was cordoned", "slurm", false},
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
		{"that drain", drain, true},
		{"by whatever clock of the same time", Reason{Text: drain.Text, At: at.In(time.FixedZone("", 3600))}, true},
		{"when slurmd was silent since, which has another time", Reason{Text: drain.Text + " : Not responding", At: at.Add(time.Hour)}, true},
		{"not one for the same reason at another time", Reason{Text: drain.Text, At: at.Add(time.Second)}, false},
		{"nor another one of the same time", Reason{Text: "bad disk", At: at}, false},
		{"nor another one that was silent", Reason{Text: "bad disk : Not responding", At: at}, false},
		{"nor one without a time", Reason{Text: drain.Text}, false},
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
