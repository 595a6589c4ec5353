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

// TestRecordedAccountingJobs reads what a slurmrestd 26.05.5 sent of jobs that slurmdbd had: srun, a task of an array, a job that could not
// start, and one that waits.
func TestRecordedAccountingJobs(t *testing.T) {
	var asked string
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slurm/v0.0.45/ping/" {
			_, _ = io.WriteString(w, pingAnswer)
			return
		}
		asked = r.URL.RequestURI()
		_, _ = io.WriteString(w, recorded(t, "accountingjobs-26.05.5-v0.0.45.json"))
	})
	got, err := client.AccountingJobs(t.Context(), time.Unix(1795621000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if want := "/slurmdb/v0.0.45/jobs/?skip_steps=true&start_time=1795621000"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	want := []JobRecord{
		{
			ID: 1, Name: "greeting", Partition: "main", UserID: NoUserID, State: []string{"COMPLETED"}, Reason: "None", Nodes: "worker-[1,0]", CPUs: 2,
			TRES: "cpu=2,mem=128M,node=2,billing=2", Submitted: at(1795624692), Start: at(1795624692), End: at(1795624692),
		},
		{
			ID: 2, Name: "array", ArrayJob: 2, ArrayTask: "4", Partition: "main", UserID: NoUserID, State: []string{"COMPLETED"}, Reason: "None", Nodes: "worker-1",
			CPUs: 1, TRES: "cpu=1,mem=64M,node=1,billing=1", Output: "/home/alice/%x-%A-%a.out", Submitted: at(1795624692), Start: at(1795624696), End: at(1795624698),
		},
		{
			ID: 7, Name: "running", Partition: "main", UserID: NoUserID, State: []string{"FAILED"}, Reason: "None", Nodes: "worker-0", CPUs: 1, Signal: 53,
			TRES: "cpu=1,mem=64M,node=1,billing=1", Output: "slurm-%j.out", Submitted: at(1795624892), Start: at(1795624892), End: at(1795624892),
		},
		{
			ID: 10, Name: "big", Partition: "main", UserID: NoUserID, State: []string{"PENDING"}, Reason: "None", CPUs: 64,
			TRES: "cpu=64,mem=4096M,node=1,billing=64", Output: "slurm-%j.out", Submitted: at(1795624892),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestASlurmrestdWithoutSlurmdbdSaysSo(t *testing.T) {
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slurm/v0.0.45/ping/" {
			_, _ = io.WriteString(w, pingAnswer)
			return
		}
		http.Error(w, "Unable to find requested URL endpoint", http.StatusNotFound)
	})
	if list, err := client.AccountingJobs(t.Context(), time.Unix(1, 0)); !errors.Is(err, errNotServed) || list != nil {
		t.Errorf("%v, %v", list, err)
	}
}

func FuzzAccountingJobs(f *testing.F) {
	f.Add(recorded(f, "accountingjobs-26.05.5-v0.0.45.json"))
	f.Add(`{"jobs":[{"job_id":1,"time":{"limit":{"set":true,"number":-9}},"tres":{"allocated":[{"type":"mem","count":-2}]}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		list, _, err := decodeAccountingJobs(newReader(newScanner(strings.NewReader(text), maxOtherBytes)))
		if err != nil && list != nil {
			t.Errorf("%d jobs and %v", len(list), err)
		}
	})
}
