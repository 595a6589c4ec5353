// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// alice is the issuer of another user than the client's.
const alice = fixed("the token of alice")

func TestASubmissionSaysWhatTheJobIs(t *testing.T) {
	var path string
	var sent map[string]any
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/ping/") {
			_, _ = io.WriteString(w, pingAnswer)
			return
		}
		path = r.Method + " " + r.URL.Path + " as " + r.Header.Get(tokenHeader)
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"job_id": 17, "step_id": "batch", "job_submit_user_msg": "", "errors": [], "warnings": []}`)
	})
	id, err := client.SubmitJob(t.Context(), alice, Submission{
		Name: "gpu", Script: "#!/bin/bash\ntrue <&1\n", Partition: "hidden", Nodes: []string{"a"}, Reservation: "r", Comment: "run 1",
		TimeLimit: 61 * time.Second, Directory: "/", Output: "/o/%j", Environment: []string{"PATH=/bin"},
	})
	if err != nil || id != 17 || path != "POST /slurm/v0.0.45/job/submit as the token of alice" {
		t.Errorf("%s: job %d, %v", path, id, err)
	}
	want := map[string]any{"job": map[string]any{
		"name": "gpu", "script": "#!/bin/bash\ntrue <&1\n", "partition": "hidden", "required_nodes": []any{"a"}, "minimum_nodes": 1.0, "reservation": "r",
		"comment": "run 1", "time_limit": map[string]any{"set": true, "number": 2.0},
		"current_working_directory": "/", "standard_output": "/o/%j", "environment": []any{"PATH=/bin", "SLURM_SUBMIT_DIR=/"},
	}}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := client.SubmitJob(t.Context(), alice, Submission{Script: "x"}); err == nil {
		t.Error("a job without a directory is sent")
	}
}

func TestASubmissionThatIsRefusedOrUnansweredHasNoNumber(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		kind   Kind
	}{
		"Slurm refuses":              {http.StatusUnprocessableEntity, `{"job_id": 0, "errors": [{"error_number": 2000, "error": "Invalid partition name specified"}]}`, Refused},
		"with a number all the same": {http.StatusOK, `{"job_id": 17, "errors": [{"error_number": 2000, "error": "Invalid partition name specified"}]}`, Refused},
		"slurmctld is away":          {http.StatusBadGateway, `{"errors": [{"error_number": 1800, "error": "Unable to contact slurm controller (connect failure)"}]}`, Unavailable},
		"the answer has no number":   {http.StatusOK, `{"errors": []}`, Malformed},
		"the number is none":         {http.StatusOK, `{"job_id": 0, "errors": []}`, Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			submissions := 0
			client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/ping/") {
					_, _ = io.WriteString(w, pingAnswer)
					return
				}
				submissions++
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			})
			id, err := client.SubmitJob(t.Context(), alice, Submission{Script: "#!/bin/true", Directory: "/", Environment: []string{"A=b"}})
			if id != 0 || !errors.Is(err, test.kind) || submissions != 1 {
				t.Errorf("job %d after %d submissions: %v", id, submissions, err)
			}
		})
	}
}

func FuzzSubmitted(f *testing.F) {
	f.Add(`{"job_id": 17, "errors": []}`)
	f.Add(`{"job_id": {"set": true, "number": 17}, "errors": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		if id, errs, err := decodeSubmitted(newReader(newScanner(strings.NewReader(text), maxOtherBytes))); err == nil && len(errs) == 0 && id <= 0 {
			t.Errorf("job %d of %q", id, text)
		}
	})
}
