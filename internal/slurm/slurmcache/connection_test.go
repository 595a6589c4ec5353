// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestAnAnswerCountsWhatTheQuickestOfItsSizeCost(t *testing.T) {
	const second, ms, long = time.Second, time.Millisecond, 10_000_000
	list := func(worked time.Duration, bytes int64) rest.Observation {
		return rest.Observation{Call: listJobs, Result: rest.ResultOK, Worked: worked, Received: bytes}
	}
	tests := map[string]struct {
		seen []rest.Observation
		want time.Duration
	}{
		"one answer counts whole":                                 {[]rest.Observation{list(second, long)}, second},
		"an answer that waited for a processor counts less":       {[]rest.Observation{list(10*ms, long), list(second, long+1)}, 10 * ms},
		"an answer that is longer counts whole":                   {[]rest.Observation{list(10*ms, long), list(second, 9*long)}, second},
		"the first short answer that took seconds was waiting":    {[]rest.Observation{list(5*second, 20_000)}, 52 * ms},
		"five short answers that took seconds were work":          {[]rest.Observation{list(second, 9), list(second, 9), list(second, 9), list(second, 9), list(second, 9)}, second},
		"five answers later the quickest is forgotten":            {[]rest.Observation{list(ms, long), list(second, long), list(second, long), list(second, long), list(second, long), list(second, long)}, second},
		"a call that failed after a minute was waiting":           {[]rest.Observation{{Call: listJobs, Result: "unavailable", Worked: time.Minute}}, 200 * ms},
		"a call that was refused at once counts what it took":     {[]rest.Observation{{Call: listJobs, Result: "refused", Worked: ms}}, ms},
		"a call that failed says nothing of the answers after it": {[]rest.Observation{{Call: listJobs, Result: "unavailable", Worked: ms}, list(second, long)}, second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c connection
			for _, o := range test.seen {
				c.worked(o)
			}
			if got := c.lastWork(listJobs); got != test.want {
				t.Errorf("it counts %s instead of %s", got, test.want)
			}
		})
	}
}
