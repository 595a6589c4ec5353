// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import "time"

// Never returns the deadline of jobs without a time limit, in a form that every reader of RFC 3339 understands.
func Never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// Sooner returns the earlier of two times, of which zero is none.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
