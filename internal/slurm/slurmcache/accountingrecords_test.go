// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestSlurmdbdIsAskedForWhatIsNew(t *testing.T) {
	const lookback = time.Hour
	simulate(t, 2, func(t *testing.T, s *fake.Slurm, l *Cache) {
		done := s.Submit(fake.Job{NodeList: []string{"worker-0"}, Name: "done", CPUs: 1})
		stays := s.Submit(fake.Job{NodeList: []string{"worker-1"}, Name: "stays"})
		var asked []string
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.HasPrefix(r.URL.Path, "/slurmdb/") {
				asked = append(asked, r.URL.Query().Get("start_time"))
			}
			return nil
		})
		collect := func(want ...int64) {
			t.Helper()
			got, err := l.CollectAccountingJobs(t.Context(), lookback)
			if err != nil || len(got.Jobs) != len(want) {
				t.Fatalf("%d jobs, want %d, %v", len(got.Jobs), len(want), err)
			}
			for i, id := range want {
				if got.Jobs[i].ID != id {
					t.Errorf("job %d is %+v, want number %d", i, got.Jobs[i], id)
				}
			}
		}
		collect(done, stays)
		s.Finish(done)
		s.ForgetJob(done) // slurmdbd has it all the same
		after(10 * time.Minute)
		collect(done, stays)
		after(10 * time.Minute)
		collect(done, stays) // slurmdbd no longer returns the first, which is known
		after(time.Hour)
		collect(stays)
		if len(asked) != 4 || asked[0] >= asked[1] {
			t.Errorf("asked since %v", asked)
		}
	})
}

func TestSlurmdbdThatDoesNotAnswerLeavesWhatIsKnown(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.Submit(fake.Job{NodeList: []string{"worker-0"}})
		first, err := l.CollectAccountingJobs(t.Context(), time.Hour)
		if err != nil || len(first.Jobs) != 1 {
			t.Fatal(len(first.Jobs), err)
		}
		after(10 * time.Minute)
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.HasPrefix(r.URL.Path, "/slurmdb/") {
				return &fake.Fault{Error: &fake.Error{Number: 7000, Description: "slurmdb_jobs_get()", Text: "Unable to connect to database"}}
			}
			return nil
		})
		second, err := l.CollectAccountingJobs(t.Context(), time.Hour)
		if err == nil || errors.Is(err, t.Context().Err()) || !second.Taken.Equal(first.Taken) || len(second.Jobs) != 1 {
			t.Errorf("%d jobs of %s, %v", len(second.Jobs), second.Taken, err)
		}
	})
}
