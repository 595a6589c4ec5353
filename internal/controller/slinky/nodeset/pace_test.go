// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestLargeNodeSetsAreLeftAloneLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		workers int
		after   time.Duration
		want    time.Duration
	}{
		"a NodeSet without workers is not left alone":     {0, 0, 0},
		"ten workers hardly make a difference":            {10, 0, 5 * time.Millisecond},
		"a thousand changes are looked at twice a second": {1000, 0, 500 * time.Millisecond},
		"the time that has passed counts":                 {1000, 400 * time.Millisecond, 100 * time.Millisecond},
		"nobody waits longer than a second":               {50000, 0, time.Second},
		"a NodeSet is looked at in the end":               {50000, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var p pace
			set, now := types.NamespacedName{Namespace: "slurm", Name: "w"}, time.Unix(1795172262, 0)
			if p.pause(set, now) > 0 {
				t.Error("what was never looked at is left alone")
			}
			p.looked(set, tc.workers, now)
			if got := max(0, p.pause(set, now.Add(tc.after))); got != tc.want {
				t.Errorf("it is left alone for %s, want %s", got, tc.want)
			}
		})
	}
}
