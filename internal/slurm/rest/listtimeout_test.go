// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"testing"
	"time"
)

func TestListTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		took     time.Duration
		failures int
		want     time.Duration
	}{
		"nothing known yet gets the least":                  {want: 5 * time.Second},
		"a fast cluster gets the least":                     {took: 20 * time.Millisecond, want: 5 * time.Second},
		"a slow cluster gets ten times its last answer":     {took: 2 * time.Second, want: 20 * time.Second},
		"each failure doubles the time":                     {failures: 2, want: 20 * time.Second},
		"many failures get no more than the longest":        {failures: 40, want: time.Minute},
		"a very slow cluster gets no more than the longest": {took: time.Minute, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ListTimeout(tc.took, tc.failures, time.Minute); got != tc.want {
				t.Errorf("ListTimeout(%s, %d) = %s, want %s", tc.took, tc.failures, got, tc.want)
			}
		})
	}
}
