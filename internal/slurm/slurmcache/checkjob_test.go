// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// checking is a cache of a Slurm with one node, which may or may not know ChecksUser.
func checking(t *testing.T, options fake.Options) (*fake.Slurm, *Cache) {
	t.Helper()
	options.Key = hmacKey
	s := fake.New(options)
	s.Register(fake.Node{Name: "a", CPUs: 4})
	checks, err := token.NewSigned(hmacKey, ChecksUser, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey), Checks: checks}, Options{Transport: s.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

var check = rest.Submission{Name: "gpu", Script: "#!/bin/bash\n", Nodes: []string{"a"}, Comment: "run 1", Directory: "/", Environment: []string{"A=b"}}

func TestJobsOfChecksAreThoseOfTheirUser(t *testing.T) {
	s, l := checking(t, fake.Options{})
	s.Submit(fake.Job{Nodes: 1, CPUs: 1, Comment: "run 1"}) // somebody else's
	for range 2 {
		if _, err := l.SubmitJob(t.Context(), check); err != nil {
			t.Fatal(err)
		}
	}
	if calls := s.Counters().Calls; calls["POST job"] != 2 || calls["GET job"] != 1 {
		t.Errorf("only the first job is looked at; calls were %v", calls)
	}
	jobs, err := l.CheckJobs(t.Context(), func(comment string) bool { return comment == "run 1" })
	if err != nil || len(jobs) != 2 || jobs[0].User != ChecksUser {
		t.Errorf("jobs are %+v, %v", jobs, err)
	}
	if jobs, err := l.CheckJobs(t.Context(), func(comment string) bool { return comment == "run 2" }); err != nil || len(jobs) > 0 {
		t.Errorf("jobs of another run are %+v, %v", jobs, err)
	}
	if j, err := l.Job(t.Context(), 2); err != nil || j.User != ChecksUser || j.Comment != "run 1" {
		t.Errorf("the job is %+v, %v", j, err)
	}
	if _, err := l.Job(t.Context(), 99); !errors.Is(err, rest.Absent) {
		t.Errorf("a job that is not there: %v", err)
	}
}

// slurmrestd has no accounts of a jail, so that it returns no names of users.
func TestJobsOfChecksAreThoseOfTheirUIDWhereSlurmTellsNoNames(t *testing.T) {
	s, l := checking(t, fake.Options{Nameless: true})
	id, err := l.SubmitJob(t.Context(), check)
	if err != nil {
		t.Fatal(err)
	}
	s.Submit(fake.Job{Nodes: 1, CPUs: 1, Comment: "run 1"}) // of somebody who has copied the comment
	for name, from := range map[string]*Cache{"who submitted": l, "who has restarted": restarted(t, s)} {
		jobs, err := from.CheckJobs(t.Context(), func(comment string) bool { return comment == "run 1" })
		if err != nil || len(jobs) != 1 || jobs[0].ID != id {
			t.Errorf("%s finds %+v, %v", name, jobs, err)
		}
	}
}

// restarted is a cache that knows nothing yet.
func restarted(t *testing.T, s *fake.Slurm) *Cache {
	t.Helper()
	l, err := New(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)}, Options{Transport: s.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNobodyRunsChecksForAUserThatSlurmDoesNotKnow(t *testing.T) {
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		t.Run(release, func(t *testing.T) {
			s, l := checking(t, fake.Options{Release: release, UnknownUsers: []string{ChecksUser}})
			id, err := l.SubmitJob(t.Context(), check)
			if id != 0 || !errors.Is(err, rest.Unauthorized) || !strings.Contains(err.Error(), ChecksUser) {
				t.Errorf("job %d, %v", id, err)
			}
			if j, ok := s.Job(1); ok && j.State[0] != "CANCELLED" {
				t.Errorf("the job is %v", j.State)
			}
		})
	}
}

func TestALinkWithoutTokensOfTheUserSubmitsNothing(t *testing.T) {
	s, l := checking(t, fake.Options{})
	if err := l.Set(Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.SubmitJob(t.Context(), check); err == nil || s.Counters().Calls["POST job"] != 0 {
		t.Errorf("submitting says %v", err)
	}
}
