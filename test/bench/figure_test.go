// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

// figure is one line of what is printed.
type figure struct {
	Workers  int     `json:"workers"`
	Scenario string  `json:"scenario"`
	Figure   string  `json:"figure"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	// Limit is the most that a run may have without failing; only counts have one.
	Limit *int64 `json:"limit,omitempty"`
	// Of is what a count consists of.
	Of tally `json:"of,omitempty"`
}

func (b *bench) write(f figure) {
	b.t.Helper()
	f.Workers, f.Value = b.size, math.Round(f.Value*1000)/1000
	text, err := json.Marshal(f)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("%s", text)
	if *out == "" {
		return
	}
	file, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = fmt.Fprintf(file, "%s\n", text)
	if closed := file.Close(); err != nil || closed != nil {
		b.t.Fatalf("writing %s: %v, %v", *out, err, closed)
	}
}

// tell prints what depends on the machine.
func (b *bench) tell(scenario, what string, value float64, unit string) {
	b.t.Helper()
	b.write(figure{Scenario: scenario, Figure: what, Value: value, Unit: unit})
}

// tellSlurmReads prints what was asked of Slurm, which has no limit.
func (b *bench) tellSlurmReads(scenario string, of tally) {
	b.t.Helper()
	b.write(figure{Scenario: scenario, Figure: "Slurm reads", Value: float64(of.total()), Of: of})
}

// hold prints a count and fails when it is above its limit.
func (b *bench) hold(scenario, what string, of tally, limit int) {
	b.t.Helper()
	n := of.total()
	most := int64(limit)
	b.write(figure{Scenario: scenario, Figure: what, Value: float64(n), Unit: "", Limit: &most, Of: of})
	if n > most {
		exceeded := fmt.Sprintf("%s: %d %s, at most %d are allowed: %v", scenario, n, what, limit, of)
		b.t.Error(exceeded)
		b.exceeded = append(b.exceeded, exceeded)
	}
}

// tellLoad prints how busy the machine is, which is what times depend on: the operator is not the only one on it.
func (b *bench) tellLoad(scenario string) {
	b.t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.t.Fatal(err)
	}
	var load float64
	if _, err := fmt.Sscan(string(text), &load); err != nil {
		b.t.Fatal(err)
	}
	b.tell(scenario, "load of the machine in the last minute", load, "")
}

// spread prints the median and the worst of several times.
func (b *bench) spread(scenario, what string, took []time.Duration) {
	b.t.Helper()
	b.tell(scenario, what+", p50", percentile(took, 50).Seconds(), "s")
	b.tell(scenario, what+", p99", percentile(took, 99).Seconds(), "s")
}

// percentile returns the nearest-rank percentile; of less than a hundred the 99th is the longest.
func percentile(took []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for i := range 200 {
		took = append(took, time.Duration(200-i))
	}
	for p, want := range map[int]time.Duration{1: 2, 50: 100, 99: 198, 100: 200} {
		if got := percentile(took, p); got != want {
			t.Errorf("percentile %d is %d, want %d", p, got, want)
		}
	}
	if got := percentile(took[:1], 50); got != 200 {
		t.Errorf("the median of one is %d", got)
	}
}
