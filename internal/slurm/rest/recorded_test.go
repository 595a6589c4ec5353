// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRecordedObjects reads what a slurmrestd 26.05.5 sent of everything that is neither node nor job.
func TestRecordedObjects(t *testing.T) {
	files := map[string]string{
		"partitions/": "partitions", "reservations/": "reservations", "diag/": "diag", "conf": "conf", "jobs/state/": "jobstates",
	}
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/slurm/v0.0.45/")
		if path == "ping/" {
			_, _ = io.WriteString(w, pingAnswer)
			return
		}
		_, _ = io.WriteString(w, recorded(t, files[path]+"-26.05.5-v0.0.45.json"))
	})
	partitions, err := client.Partitions(t.Context())
	if diff := cmp.Diff([]Partition{{Name: "main", State: []string{"UP"}, Nodes: "n[00001-00003]", NodeSets: "ALL", Total: 3}}, partitions); err != nil || diff != "" {
		t.Errorf("partitions: %v (-want +got):\n%s", err, diff)
	}
	reservations, err := client.Reservations(t.Context())
	want := []Reservation{{
		Name: "maintenance", Start: time.Unix(1795186623, 0), End: time.Unix(1795190223, 0), Nodes: "n[00001-00002]",
		Flags: []string{"MAINT", "IGNORE_JOBS", "SPEC_NODES"}, Users: []string{"root"},
	}}
	if diff := cmp.Diff(want, reservations); err != nil || diff != "" {
		t.Errorf("reservations: %v (-want +got):\n%s", err, diff)
	}
	diag, err := client.Diag(t.Context())
	wantDiag := Diag{
		Time: time.Unix(1795186024, 0), Since: time.Unix(1795186020, 0), ServerThreads: 1, ScheduleCycle: 2588 * time.Microsecond,
		ByMessage: []Calls{
			{"REQUEST_SUBMIT_BATCH_JOB", 4003, 2, 3382 * time.Microsecond}, {"REQUEST_RESERVATION_INFO", 2024, 2, 82 * time.Microsecond},
			{"REQUEST_CREATE_RESERVATION", 3006, 1, 260 * time.Microsecond}, {"REQUEST_PARTITION_INFO", 2009, 1, 375 * time.Microsecond},
		},
		ByUser: []Calls{{Name: "root"}, {"slurm", 401, 6, 4099 * time.Microsecond}},
	}
	if diff := cmp.Diff(wantDiag, diag); err != nil || diff != "" {
		t.Errorf("diag: %v (-want +got):\n%s", err, diff)
	}
	conf, err := client.Conf(t.Context())
	if diff := cmp.Diff(Conf{Release: "26.05.5"}, conf); err != nil || diff != "" {
		t.Errorf("conf: %v (-want +got):\n%s", err, diff)
	}
	states, err := client.JobStates(t.Context(), nil)
	if diff := cmp.Diff([]JobState{{1, []string{"RUNNING"}}, {2, []string{"RUNNING"}}}, states); err != nil || diff != "" {
		t.Errorf("job states: %v (-want +got):\n%s", err, diff)
	}
}
