// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import "fmt"

// What is kept of one answer is bounded, so that neither slurmrestd nor anything that answers in its place can take all memory of the
// operator. What is not kept is read through a window, and only has to end.
const (
	// MaxNodes is how many nodes a cluster may have; Slurm itself has no more.
	MaxNodes = 65536
	// MaxJobs is how many jobs may occupy nodes.
	MaxJobs = 1 << 18
	// maxStates is how many states of jobs are kept, and maxEntries how many entries of short lists.
	maxStates  = 1 << 20
	maxEntries = 1 << 14
	// maxKept is how many bytes of texts are kept of one answer: 1 KiB for each of the most nodes.
	maxKept = 64 << 20
	// maxNodesBytes and maxOtherBytes are how many bytes lists of nodes, and all but those and lists of jobs, may have.
	maxNodesBytes = 512 << 20
	maxOtherBytes = 64 << 20
)

// A Bound is the cause of an Error about an answer that has more than is accepted. It names the bound.
type Bound string

// Error returns that the answer is beyond the bound.
func (b Bound) Error() string {
	return "the answer has more than " + string(b) + ", which is the most that is accepted"
}

// exceeds stops the reading because of a bound.
func (r *reader) exceeds(format string, args ...any) {
	if r.err == nil {
		r.err = Bound(fmt.Sprintf(format, args...))
	}
}

// admit counts one more entry of a list, and reports whether it may be kept.
func (r *reader) admit(have, limit int, what string) bool {
	if have >= limit {
		r.exceeds("%d %s", limit, what)
	}
	return r.err == nil
}

// keep counts bytes that are kept.
func (r *reader) keep(n int) {
	if r.kept += n; r.kept > maxKept {
		r.exceeds("%d MiB of texts", maxKept>>20)
	}
}
