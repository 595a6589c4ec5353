// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"slices"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestANodeThatAJobNamesIsNotUnnamed(t *testing.T) {
	leaves(t, func(t *testing.T, _ string, s *fake.Slurm, l *Cache) {
		nodes := []string{"worker-0", "worker-1"}
		unnamed := func(want ...string) {
			t.Helper()
			if got, err := l.Unnamed(t.Context(), nodes); err != nil || !slices.Equal(got, want) {
				t.Errorf("unnamed are %v, want %v; %v", got, want, err)
			}
		}
		unnamed(nodes...)
		s.Submit(fake.Job{Partition: "main", CPUs: 8})
		waiting := s.Submit(fake.Job{Partition: "main", CPUs: 8, NodeList: []string{"worker-0"}})
		unnamed("worker-1")
		s.Cancel(waiting)
		unnamed(nodes...)
		for range maxJobsLookedAt {
			s.Submit(fake.Job{Partition: "main", CPUs: 8})
		}
		unnamed()
	})
}
