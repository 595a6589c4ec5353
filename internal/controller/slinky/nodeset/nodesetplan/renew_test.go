// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
)

func TestHowLongNewWorkersWaitForTheRecordsOfTheOnesBefore(t *testing.T) {
	const heard, failed, reachable = 1, 2, 4
	for _, tt := range []struct {
		name  string
		facts int
		since time.Duration // before now; 0 for never
		waits bool
		keeps time.Duration // what is remembered, before now; -1 for nothing
	}{
		{"all records were deleted", heard, time.Second, false, -1},
		{"a deletion has just failed", heard | failed, 0, true, 0},
		{"a deletion goes on failing", heard | failed, time.Minute, true, time.Minute},
		{"a deletion fails for too long", heard | failed, nodesetplan.MaxRecordDeleteTime, false, -1},
		{"Slurm is lost meanwhile", 0, time.Minute, true, time.Minute},
		{"Slurm is lost for too long", 0, nodesetplan.MaxRecordDeleteTime, false, nodesetplan.MaxRecordDeleteTime},
		{"Slurm is lost for too long, and said to be reachable", reachable, nodesetplan.MaxRecordDeleteTime, true, 0},
		{"the operator has just started", reachable, 0, true, 0},
		{"Slurm is away", 0, 0, false, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := nodesetplan.Renewal{Now: noon, Heard: tt.facts&heard != 0, Failed: tt.facts&failed != 0, Reachable: tt.facts&reachable != 0}
			if tt.since > 0 {
				facts.Since = noon.Add(-tt.since)
			}
			got := nodesetplan.Renew(facts)
			if waits := got.Again.Equal(noon.Add(nodesetplan.RecordDeleteRetryInterval)); waits != tt.waits || !waits && !got.Again.IsZero() {
				t.Errorf("again at %s", got.Again)
			}
			if want := noon.Add(-tt.keeps); tt.keeps < 0 && !got.Since.IsZero() || tt.keeps >= 0 && !got.Since.Equal(want) {
				t.Errorf("since %s is remembered", got.Since)
			}
		})
	}
}
