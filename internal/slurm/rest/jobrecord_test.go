// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// failedJob is a job as 26.05.5 shows it, without what is not read.
const failedJob = `{"job_id": 2, "name": "gpu", "user_name": "alice", "comment": "run 1", "job_state": ["FAILED"], "state_reason": "RaisedSignal",
	"nodes": "a", "job_resources": {"nodes": {"list": "b"}}, "exit_code": {"status": ["SIGNALED"], "return_code": {"set": false, "infinite": false, "number": 0},
	"signal": {"id": {"set": true, "infinite": false, "number": 9}, "name": "KILL"}}, "submit_time": {"set": true, "number": 10}, "start_time": {"set": true, "number": 11},
	"end_time": {"set": true, "infinite": false, "number": 12}}`

func TestAJobIsLookedAt(t *testing.T) {
	jobs := `{"jobs": [` + failedJob + `, {"job_id": 3, "job_state": ["RUNNING"], "comment": "run 2", "end_time": {"set": true, "number": 99}}], "last_update": {"set": true, "number": 5}, "errors": []}`
	client := serve(t, Options{}, answering(http.StatusOK, jobs))
	want := JobRecord{
		ID: 2, Name: "gpu", User: "alice", Comment: "run 1", State: []string{"FAILED"}, Reason: "RaisedSignal", Nodes: "a", Signal: 9,
		Submitted: time.Unix(10, 0), Start: time.Unix(11, 0), End: time.Unix(12, 0),
	}
	got, err := client.Job(t.Context(), 2)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if got, err := client.Job(t.Context(), 3); err != nil || !got.End.IsZero() {
		t.Errorf("a job that runs has ended at %s, %v", got.End, err)
	}
	if _, err := client.Job(t.Context(), 4); !errors.Is(err, Malformed) {
		t.Errorf("an answer without the job: %v", err)
	}
	list, err := client.JobRecords(t.Context(), func(j JobRecord) bool { return j.Comment == "run 1" })
	if diff := cmp.Diff([]JobRecord{want}, list); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

func TestWhatAJobHasOrWaitsFor(t *testing.T) {
	tests := map[string]struct {
		job  string
		want JobRecord
	}{
		"a task that runs": {`{"job_id": 24, "job_state": ["RUNNING"], "array_job_id": {"set": true, "number": 18}, "array_task_id": {"set": true, "number": 0},
			"array_task_string": "", "partition": "main", "mail_user": "x@y", "cpus": {"set": true, "number": 4}, "tres_alloc_str": "cpu=4,mem=4000M",
			"tres_req_str": "cpu=4", "standard_output": "a-%j", "standard_error": "b", "start_time": {"set": true, "number": 11},
			"time_limit": {"set": true, "infinite": false, "number": 1}, "end_time": {"set": true, "number": 71}}`,
			JobRecord{
				ID: 24, ArrayJob: 18, ArrayTask: "0", Partition: "main", Mail: "x@y", State: []string{"RUNNING"}, CPUs: 4, TRES: "cpu=4,mem=4000M",
				Output: "a-%j", ErrorOutput: "b", Start: time.Unix(11, 0), Limit: time.Unix(71, 0),
			}},
		"tasks that wait": {`{"job_id": 18, "job_state": ["PENDING"], "array_job_id": {"set": true, "number": 18}, "array_task_id": {"set": false, "number": 0},
			"array_task_string": "1-9%1", "tres_alloc_str": "", "tres_req_str": "cpu=4"}`,
			JobRecord{ID: 18, ArrayJob: 18, ArrayTask: "1-9%1", State: []string{"PENDING"}, TRES: "cpu=4"}},
		"a job without a time limit": {`{"job_id": 3, "job_state": ["RUNNING"], "time_limit": {"set": true, "infinite": true, "number": 0},
			"end_time": {"set": true, "number": 9999999999}}`, JobRecord{ID: 3, State: []string{"RUNNING"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			client := serve(t, Options{}, answering(http.StatusOK, `{"jobs": [`+tt.job+`], "last_update": {"set": true, "number": 5}, "errors": []}`))
			got, err := client.Job(t.Context(), tt.want.ID)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAJobThatIsNotThereIsAbsent(t *testing.T) {
	client := serve(t, Options{}, answering(http.StatusNotFound,
		`{"jobs": [], "errors": [{"description": "Unable to query JobId=77", "error_number": 2017, "error": "Invalid job id specified"}]}`))
	if _, err := client.Job(t.Context(), 77); !errors.Is(err, Absent) {
		t.Errorf("the job is %v", err)
	}
}

func TestStatesAreAskedForByOneCall(t *testing.T) {
	var queries []string
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/ping/") {
			_, _ = io.WriteString(w, pingAnswer)
			return
		}
		queries = append(queries, r.URL.RawQuery)
		_, _ = io.WriteString(w, `{"jobs": [{"job_id": "1", "state": ["RUNNING"]}], "errors": []}`)
	})
	got, err := client.StatesOfJobs(t.Context(), []int64{1, 2})
	if diff := cmp.Diff([]JobState{{1, []string{"RUNNING"}}}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	if got, err := client.StatesOfJobs(t.Context(), nil); got != nil || err != nil {
		t.Errorf("none of no job: %v, %v", got, err)
	}
	if got, err := client.StatesOfJobs(t.Context(), make([]int64, maxAsked+1)); len(got) != 2 || err != nil {
		t.Errorf("states of many jobs: %v, %v", got, err)
	}
	if len(queries) != 3 || queries[0] != "job_id=1&job_id=2" {
		t.Errorf("calls were %.40q", queries)
	}
}

func TestWhichJobsHaveEnded(t *testing.T) {
	for state, want := range map[string]bool{
		"": false, "PENDING": false, "RUNNING": false, "SUSPENDED": false, "COMPLETED": true, "COMPLETED COMPLETING": false, "FAILED": true,
		"NODE_FAIL": true, "NODE_FAIL REQUEUED": false, "CANCELLED": true, "PENDING REQUEUE_HOLD": false, "SOMETHING_NEW": false,
	} {
		if got := Finished(strings.Fields(state)); got != want {
			t.Errorf("%q has ended: %t", state, got)
		}
	}
}

func TestWhatBecameOfCancelledJobs(t *testing.T) {
	status := func(code string) string {
		return `{"status": [{"error": {"string": "says Slurm", "code": ` + code + `, "message": "m"}, "step_id": "7", "job_id": {"set": false}}], "errors": []}`
	}
	for name, test := range map[string]struct {
		status int
		body   string
		kind   Kind
		code   int
	}{
		"all jobs are cancelled":           {http.StatusOK, `{"status": [], "errors": []}`, "", 0},
		"one job is not there":             {http.StatusOK, status("2017"), "", 0},
		"one job has ended":                {http.StatusOK, status("2021"), "", 0},
		"one job is somebody else's":       {http.StatusOK, status("2010"), Refused, 2010},
		"nothing is said of the jobs":      {http.StatusOK, `{"errors": []}`, Malformed, 0},
		"slurmctld does not take the call": {http.StatusForbidden, `{"status": [], "errors": [{"error_number": 1, "error": "Operation not permitted"}]}`, Refused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			err := serve(t, Options{}, answering(test.status, test.body)).CancelJobs(t.Context(), []int64{7})
			failure, _ := errors.AsType[*Error](err)
			if test.kind == "" && err != nil || test.kind != "" && (failure == nil || failure.Kind != test.kind || failure.Code != test.code) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzJobRecords(f *testing.F) {
	f.Add(`{"jobs": [` + failedJob + `], "last_update": {"set": true, "number": 5}, "errors": []}`)
	f.Add(`{"jobs": [], "last_update": 0, "errors": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		list, errs, err := decodeJobRecords(newReader(newScanner(strings.NewReader(text), maxOtherBytes)), func(JobRecord) bool { return true })
		for _, j := range list {
			if err != nil || len(errs) > 0 || !j.End.IsZero() && !Finished(j.State) {
				t.Errorf("%+v of %q, %v", j, text, err)
			}
		}
	})
}

func FuzzCanceled(f *testing.F) {
	f.Add(`{"status": [{"error": {"string": "s", "code": 2010}, "step_id": "7"}], "errors": []}`)
	f.Add(`{"status": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		errs, err := decodeCanceled(newReader(newScanner(strings.NewReader(text), maxOtherBytes)))
		if err == nil && len(errs) > 2*maxErrors {
			t.Errorf("%d errors", len(errs))
		}
	})
}
