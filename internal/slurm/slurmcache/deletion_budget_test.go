// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestBudgetOfDestructiveActions(t *testing.T) {
	simulate(t, 60, func(t *testing.T, _ *fake.Slurm, l *Cache) {
		begin := time.Now()
		changes := l.hub.subscribe()
		defer changes.Close()
		for _, step := range []struct {
			after   time.Duration
			n       int
			granted int
			again   time.Duration
		}{
			{0, 10, 10, 0},
			{10 * time.Second, 15, 15, 0},
			{20 * time.Second, 10, 5, 60 * time.Second},
			{30 * time.Second, 1, 0, 60 * time.Second},
			{60 * time.Second, 11, 10, 70 * time.Second},
			{10 * time.Minute, 30, 30, 0},
		} {
			now := begin.Add(step.after)
			granted, again := l.Spend(now, step.n)
			want := time.Time{}
			if step.again > 0 {
				want = begin.Add(step.again)
			}
			if granted != step.granted || !again.Equal(want) {
				t.Errorf("after %s %d are granted, again at %s; want %d, %s", step.after, granted, again.Sub(begin), step.granted, step.again)
			}
			if b := l.Budget(now); b.Until != want || b.Limit != 30 {
				t.Errorf("after %s the budget is %+v", step.after, b)
			}
		}
		if got := taken(changes); got != "main:" {
			t.Errorf("changed: %s", got)
		}
	})
}
