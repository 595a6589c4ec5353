// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is asked, and whenever, ten minutes see no more than half a minute of questions and the last one of each kind.
func TestAllowancesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1795172262, 0)
		start := now
		var a allowance
		var spent, longest time.Duration
		for now.Sub(start) < 10*time.Minute {
			about := subject(rapid.IntRange(0, int(subjects)-1).Draw(t, "subject"))
			now = now.Add(a.wait(now, about, rapid.Bool().Draw(t, "urgent")))
			if wait := a.wait(now, about, true); wait > time.Microsecond {
				t.Fatalf("after waiting, %s are left to wait", wait)
			}
			if now.Sub(start) > 10*time.Minute {
				break
			}
			cost := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "cost"))
			now = now.Add(cost)
			a.take(now, about, cost)
			spent += cost
			longest = max(longest, cost)
		}
		if spent > 30*time.Second+3*longest {
			t.Fatalf("ten minutes saw %s, the longest of which was %s", spent, longest)
		}
	})
}
