// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package need

import (
	"strings"
	"time"
)

// SqueueFormat is the --format of squeue that ParseSqueue reads: number, state, reason, end, time limit, and partition. With --array, each task
// is a line of its own.
const SqueueFormat = "%i|%T|%r|%e|%l|%P"

// ParseSqueue reads what squeue prints by SqueueFormat, where times are in UTC. Lines of another form are left out. squeue names one state of
// a job.
func ParseSqueue(text string) []Job {
	var jobs []Job
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "|")
		if len(f) != strings.Count(SqueueFormat, "|")+1 {
			continue
		}
		job := Job{ID: f[0], State: []string{f[1]}, Reason: f[2], Partition: f[5]}
		if end, err := time.Parse("2006-01-02T15:04:05", f[3]); err == nil && f[4] != "UNLIMITED" {
			job.End = end
		}
		jobs = append(jobs, job)
	}
	return jobs
}
