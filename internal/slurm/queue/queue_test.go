// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func at(minute int) time.Time { return time.Date(2026, 11, 25, 11, minute, 0, 0, time.UTC) }

func record(id int64, partition, state string, change func(j *rest.JobRecord)) *rest.JobRecord {
	j := &rest.JobRecord{ID: id, User: "alice", Partition: partition, State: []string{state}, Submitted: at(0), TRES: "cpu=4,mem=4000M,node=1,billing=4,gres/gpu=2"}
	if change != nil {
		change(j)
	}
	return j
}

func reason(text string) func(j *rest.JobRecord) { return func(j *rest.JobRecord) { j.Reason = text } }

func TestHowJobsAreSummedUp(t *testing.T) {
	one := Resources{Nodes: 1, CPUs: 4, GPUs: 2}
	tests := []struct {
		name  string
		jobs  []*rest.JobRecord
		tasks map[int64]int
		want  []Partition
	}{
		{"no job makes no partition", nil, nil, nil},
		{"a job that has ended is left out", []*rest.JobRecord{record(1, "main", "COMPLETED", nil)}, nil, nil},
		{
			"jobs are counted by what they do",
			[]*rest.JobRecord{
				record(1, "main", "RUNNING", nil), record(2, "main", "SUSPENDED", nil), record(3, "main", "PENDING", reason("Resources")),
				record(4, "main", "RUNNING", func(j *rest.JobRecord) { j.State = []string{"RUNNING", "COMPLETING"} }),
			}, nil,
			[]Partition{{
				Name: "main", Pending: 1, Running: 1, Other: 2, Wanted: one, Used: Resources{Nodes: 3, CPUs: 12, GPUs: 6}, Oldest: at(0),
				Reasons: []Reason{{"Resources", 1}},
			}},
		},
		{
			"a job that waits for two partitions is part of both",
			[]*rest.JobRecord{record(1, "main,gpu", "PENDING", reason("Priority"))}, nil,
			[]Partition{
				{Name: "gpu", Pending: 1, Wanted: one, Oldest: at(0), Reasons: []Reason{{"Priority", 1}}},
				{Name: "main", Pending: 1, Wanted: one, Oldest: at(0), Reasons: []Reason{{"Priority", 1}}},
			},
		},
		{
			"every task of an array that has not started waits",
			[]*rest.JobRecord{record(18, "main", "PENDING", func(j *rest.JobRecord) { j.ArrayJob, j.ArrayTask = 18, "4-9" })}, map[int64]int{18: 6},
			[]Partition{{Name: "main", Pending: 6, Wanted: Resources{Nodes: 6, CPUs: 24, GPUs: 12}, Oldest: at(0), Reasons: []Reason{{"", 6}}}},
		},
		{
			"components of a job are no tasks",
			[]*rest.JobRecord{record(22, "main", "PENDING", nil)}, map[int64]int{22: 2},
			[]Partition{{Name: "main", Pending: 1, Wanted: one, Oldest: at(0), Reasons: []Reason{{"", 1}}}},
		},
		{
			"the most frequent reasons come first, and few are told apart",
			[]*rest.JobRecord{
				record(1, "main", "PENDING", reason("a")), record(2, "main", "PENDING", reason("b")), record(3, "main", "PENDING", reason("b")),
				record(4, "main", "PENDING", reason("c")), record(5, "main", "PENDING", reason("d")),
			}, nil,
			[]Partition{{
				Name: "main", Pending: 5, Wanted: Resources{Nodes: 5, CPUs: 20, GPUs: 10}, Oldest: at(0),
				Reasons: []Reason{{"b", 2}, {"a", 1}, {"c", 1}}, OtherReasons: 1,
			}},
		},
		{
			"CPUs are known without trackable resources, and the first submitted is the oldest",
			[]*rest.JobRecord{
				record(1, "main", "PENDING", func(j *rest.JobRecord) { j.TRES, j.CPUs, j.Submitted = "", 3, at(5) }),
				record(2, "main", "PENDING", func(j *rest.JobRecord) { j.TRES, j.CPUs, j.Submitted = "", 3, time.Time{} }),
			}, nil,
			[]Partition{{Name: "main", Pending: 2, Wanted: Resources{CPUs: 6}, Oldest: at(5), Reasons: []Reason{{"", 2}}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Summarize(tt.jobs, tt.tasks).Partitions); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThoseThatHaveWaitedLongestAreListed(t *testing.T) {
	var jobs []*rest.JobRecord
	for i := range MaxWaiting + 5 {
		jobs = append(jobs, record(int64(100-i), "main", "PENDING", func(j *rest.JobRecord) { j.Submitted = at(50 - i) }))
	}
	jobs = append(jobs, record(7, "main", "RUNNING", nil))
	got := Summarize(jobs, nil)
	if got.Pending != MaxWaiting+5 || len(got.Waiting) != MaxWaiting || got.Waiting[0].Label != "86" {
		t.Errorf("%d wait, of which these are listed: %+v", got.Pending, got.Waiting)
	}
}

func TestHowAJobIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name        string
		job         rest.JobRecord
		label, user string
	}{
		{"by its number", rest.JobRecord{ID: 812, User: "alice"}, "812", "alice"},
		{"as an array", rest.JobRecord{ID: 18, ArrayJob: 18, ArrayTask: "4-9%2", UserID: 1000}, "18_[4-9%2]", "uid 1000"},
		{"of somebody who is not known", rest.JobRecord{ID: 1, UserID: rest.Nobody}, "1", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if l, u := label(&tt.job), user(&tt.job); l != tt.label || u != tt.user {
				t.Errorf("%s of %s", l, u)
			}
		})
	}
}

// FuzzSums checks that no sum is negative and every job that waits is counted, whatever Slurm reports.
func FuzzSums(f *testing.F) {
	f.Add("main,gpu", "PENDING", "cpu=4,node=1", int64(4), int64(18), 3)
	f.Add("", "", "node=1e300", int64(-4), int64(0), -1)
	f.Fuzz(func(t *testing.T, partition, state, list string, cpus, array int64, tasks int) {
		tasks = min(tasks, 1<<20)
		var jobs []*rest.JobRecord
		for id := range int64(3) {
			jobs = append(jobs, &rest.JobRecord{ID: id, ArrayJob: array, Partition: partition, State: []string{state}, TRES: list, CPUs: cpus})
		}
		got := Summarize(jobs, map[int64]int{1: tasks})
		for _, p := range got.Partitions {
			for _, n := range []int64{p.Wanted.Nodes, p.Wanted.CPUs, p.Wanted.GPUs, p.Used.Nodes, p.Used.CPUs, p.Used.GPUs, int64(p.Pending), int64(p.Running), int64(p.Other)} {
				if n < 0 {
					t.Fatalf("a sum is negative: %+v", p)
				}
			}
			waiting := p.OtherReasons
			for _, r := range p.Reasons {
				waiting += r.Jobs
			}
			if waiting != p.Pending {
				t.Errorf("%d jobs wait, and %d have a reason", p.Pending, waiting)
			}
		}
		if state == "PENDING" && len(got.Waiting) != len(jobs) {
			t.Error(fmt.Sprint("a job that waits is not listed: ", got.Waiting))
		}
	})
}
