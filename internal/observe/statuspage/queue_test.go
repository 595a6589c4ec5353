// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/queue"
)

func TestWhatIsSaidOfJobsIsNoMoreThanIsKnown(t *testing.T) {
	taken := func(ago time.Duration, why string) Queue {
		q := exampleQueue()
		q.Taken, q.Why = noon().Add(-ago), why
		return q
	}
	for _, tt := range []struct {
		name    string
		linked  bool
		queue   Queue
		unknown string // part of it
		age     string
		old     bool
	}{
		{"the queue is not known without a connection", false, exampleQueue(), "no connection", "", false},
		{"the queue is not known before Slurm has been asked", true, Queue{}, "while somebody follows", "", false},
		{"the queue is not known when Slurm has never answered", true, Queue{Why: "no"}, "has not answered", "", false},
		{"the queue is shown a moment after an answer", true, taken(20*time.Second, ""), "", "less than 30 s old", false},
		{"the queue is shown when the load on slurmrestd is limited", true, taken(4*time.Minute, ""), "", "4 min old", false},
		{"the queue is old when the answer is too old", true, taken(5*time.Minute, ""), "", "5 min old", true},
		{"the queue is old when Slurm did not answer any more", true, taken(20*time.Second, "no"), "", "less than 30 s old", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := jobs(Facts{Now: noon(), Slurm: Slurm{Connected: tt.linked}, Queue: tt.queue})
			if !strings.Contains(got.Unknown, tt.unknown) || (got.Unknown == "") != (tt.unknown == "") || got.Age != tt.age || got.Old != tt.old {
				t.Errorf("%+v", got)
			}
			if shown := len(got.Partitions) > 0; shown != (tt.unknown == "") {
				t.Errorf("whether there are partitions: %t", shown)
			}
		})
	}
}

func TestHowLongAJobHasWaited(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "less than 1 min", 59 * time.Second: "less than 1 min", time.Minute: "1 min", 119 * time.Minute: "119 min", 2 * time.Hour: "2 h", 48 * time.Hour: "2 d",
	} {
		if got := waited(noon(), noon().Add(-d)); got != want {
			t.Errorf("after %s it is %q, want %q", d, got, want)
		}
	}
	if got := waited(noon(), time.Time{}); got != "" {
		t.Errorf("of a job without a time it is %q", got)
	}
}

func TestNodesAreNotCountedBeforeSlurmHasListedThem(t *testing.T) {
	f := Facts{Now: noon(), Slurm: Slurm{Connected: true}, Queue: exampleQueue()}
	if got := jobs(f).Partitions[0].Nodes; got != "unknown" {
		t.Errorf("without a list of nodes there are %s", got)
	}
	f.Slurm.Taken = noon()
	if got := jobs(f).Partitions[0].Nodes; got != "0" {
		t.Errorf("in a list without nodes there are %s", got)
	}
}

func TestWaitingIsMeasuredBySlurmsClock(t *testing.T) {
	f := Facts{Now: noon(), Slurm: Slurm{Connected: true, Ahead: time.Hour}, Queue: exampleQueue()}
	if got := jobs(f).Waiting[0].Waits; got != "4 h" {
		t.Errorf("a job of three hours ago, by a clock that is an hour ahead, has waited %s", got)
	}
}

func TestHowResourcesAreSaid(t *testing.T) {
	for want, r := range map[string]queue.Resources{"": {}, "1 node, 1 CPU, 1 GPU": {Nodes: 1, CPUs: 1, GPUs: 1}, "2 nodes, 8 GPUs": {Nodes: 2, GPUs: 8}} {
		if got := resources(r); got != want {
			t.Errorf("%+v is %q, want %q", r, got, want)
		}
	}
}
