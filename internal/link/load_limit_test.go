// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is asked, and whenever, ten minutes see no more than half a minute of requests, and 7.9 seconds of those for an exporter. The
// last one of each kind comes on top, and a fifth of the time in which somebody waits.
func TestTheLoadOnSlurmrestdIsLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1795172262, 0)
		start := now
		var a loadLimit
		var spent, longest, changed time.Duration
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
				changed += min(boostTimeout, now.Add(boostTimeout).Sub(a.until))
				a.boost(now)
			}
			cost := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "cost"))
			now = now.Add(cost)
			a.take(now, about, cost)
			spent += cost
			longest = max(longest, cost)
		}
		if spent > 37900*time.Millisecond+changed/boostInverseRate+5*longest {
			t.Fatalf("ten minutes saw %s, the longest of which was %s; in %s of them somebody waited", spent, longest, changed)
		}
	})
}
