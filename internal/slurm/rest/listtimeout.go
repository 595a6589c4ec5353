// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import "time"

const (
	// minListTimeout bounds the waiting for short lists, and listTimeoutFactor is how many times as long as usual others may take.
	minListTimeout    = 5 * time.Second
	listTimeoutFactor = 10
)

// ListTimeout is how long to wait for a list, by its usual time and the number of failures in a row; at most longest. A slurmrestd that
// was asked before slurmctld was up keeps the request for minutes, and answers another one at once. A large cluster on a slow machine
// gets enough time in the end.
func ListTimeout(usual time.Duration, failures int, longest time.Duration) time.Duration {
	return min(longest, max(minListTimeout, listTimeoutFactor*usual)<<min(failures, 4))
}
