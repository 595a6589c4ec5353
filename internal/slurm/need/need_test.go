// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package need_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

func TestWhatIsSaidOfTheJobsOfAPartition(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }
	job := func(id, state, reason string, end time.Time) need.Job {
		return need.Job{ID: id, Partition: "old", State: strings.Split(state, "+"), Reason: reason, End: end}
	}
	tests := []struct {
		name string
		jobs []need.Job
		want string
	}{
		{"a partition without jobs has none", nil, "none"},
		{"a job that has ended counts for nothing", []need.Job{job("1", "COMPLETED", "", at(1))}, "none"},
		{"of jobs that run the one that ends last is named", []need.Job{
			job("1", "RUNNING", "", at(3)), job("2", "RUNNING", "", at(4)), job("3", "RUNNING+CONFIGURING", "", at(2)),
		}, "3 running (job 2 ends last, by 2026-01-02T04:00:00Z)"},
		{"a job without a time limit ends after all others", []need.Job{
			job("1", "RUNNING", "", at(3)), job("2", "RUNNING", "", time.Time{}), job("3", "RUNNING", "", at(5)),
		}, "3 running (job 2 has no time limit)"},
		{"each kind is counted by itself", []need.Job{
			job("1", "SUSPENDED", "", at(3)), job("2", "PENDING", "Resources", time.Time{}), job("3", "PENDING", "JobHeldUser", time.Time{}),
			job("4", "PENDING", "JobHeldAdmin", time.Time{}), job("5", "FAILED+COMPLETING", "", at(1)), job("6", "REQUEUE_HOLD", "", at(1)), job("7", "NEW_WORD", "", at(1)),
		}, "1 suspended, 1 pending, 3 held, 1 completing, 1 in other states"},
		{"each task of an array that has not started is a job", []need.Job{
			{ID: "9", Partition: "old", State: []string{"PENDING"}, Reason: "Priority", Tasks: 30},
		}, "30 pending"},
		{"a job that waits for several partitions counts in each", []need.Job{
			{ID: "9", Partition: "spare,old", State: []string{"PENDING"}, Reason: "Priority"}, {ID: "10", Partition: "spare", State: []string{"RUNNING"}},
			{ID: "11", Partition: "older", State: []string{"RUNNING"}},
		}, "1 pending"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := need.Count(tt.jobs, []string{"old"})["old"].String(); got != tt.want {
				t.Errorf("it is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnAnswerSaysWhatItDoesNotKnow(t *testing.T) {
	of := need.Count([]need.Job{{ID: "1", Partition: "a", State: []string{"PENDING"}}}, []string{"a", "b"})
	tests := []struct {
		name   string
		answer need.Answer
		want   string
	}{
		{"all is known", need.Answer{Of: of}, "jobs of b: none; jobs of a: 1 pending"},
		{"there may be more", need.Answer{Of: of, AtLeast: true}, "jobs of b: none among those looked at so far; jobs of a: at least 1 pending"},
		{"nothing is known", need.Answer{Unknown: "x"}, "which jobs need them is not known: x"},
		{"nobody has asked", need.Answer{}, "which jobs need them is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.answer.Words([]string{"b", "a"}); got != tt.want {
				t.Errorf("it is %q, want %q", got, tt.want)
			}
		})
	}
}
