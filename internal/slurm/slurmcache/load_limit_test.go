// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is asked, and whenever, ten minutes see no more than half a minute of requests, and 7.9 seconds of those for an exporter. The
// last one of each kind comes on top, and in the time in which somebody has just begun to wait a fifth for nodes, a twentieth for others.
func TestTheLoadOnSlurmrestdIsLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1795172262, 0)
		start := now
		var a loadLimit
		var spent, longest, boosted time.Duration
		changes := rapid.Bool().Draw(t, "changes")
		for now.Sub(start) < 10*time.Minute {
			about := subject(rapid.IntRange(0, int(subjects)-1).Draw(t, "subject"))
			now = now.Add(a.wait(now, about, rapid.Bool().Draw(t, "urgent")))
			if wait := a.wait(now, about, true); wait > time.Microsecond {
				t.Fatalf("after waiting, %s are left to wait", wait)
			}
			if now.Sub(start) > 10*time.Minute {
				break
			}
			if changes && rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				rate, timeout := about.boost()
				boosted += min(timeout, now.Add(timeout).Sub(a.until[about])) / rate
				a.boost(now, about)
			}
			cost := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "cost"))
			now = now.Add(cost)
			a.take(now, about, cost)
			spent += cost
			longest = max(longest, cost)
		}
		if limit := 37900*time.Millisecond + boosted + 5*longest; spent > limit {
			t.Fatalf("ten minutes saw %s, more than %s; the longest was %s", spent, limit, longest)
		}
	})
}

// A busy slurmrestd needs 1.5 seconds for a list of jobs, and a worker that is to end needs two of them.
func TestWhoBeginsToWaitIsNotKeptForLongByWhatOthersAsked(t *testing.T) {
	for about, name := range map[subject]string{aboutJobs: "for jobs", aboutDaemons: "for slurmctlds"} {
		t.Run(name, func(t *testing.T) {
			const cost = 1500 * time.Millisecond
			now := time.Unix(1795172262, 0)
			var a loadLimit
			a.take(now, about, cost) // of somebody else
			if wait := a.wait(now, about, true); wait < 2*time.Minute {
				t.Errorf("whoever has waited for longer may ask after %s", wait)
			}
			a.boost(now, about)
			began := now
			for range 2 {
				now = now.Add(a.wait(now, about, true) + cost)
				a.take(now, about, cost)
			}
			if took := now.Sub(began); took > time.Minute {
				t.Errorf("the second answer was there after %s", took)
			}
		})
	}
}
