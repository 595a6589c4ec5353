// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// pollInterval is the time between two looks at the queue.
const pollInterval = 500 * time.Millisecond

// Batch is what sbatch is asked for.
type Batch struct {
	// Script is the shell script without its first line.
	Script string
	// Options are the options of sbatch, such as --array=1-4.
	Options []string
}

// Submit submits a batch script and returns the number of the job.
func (s *Session) Submit(ctx context.Context, b Batch) (int, error) {
	out, err := s.Feed(ctx, "sbatch --parsable "+strings.Join(b.Options, " "), "#!/bin/bash\n"+b.Script)
	if err != nil {
		return 0, err
	}
	// With several clusters: "<job>;<cluster>".
	number, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	job, err := strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("submitting a job: sbatch said %q", out)
	}
	return job, nil
}

// Task is a job, or one task of a job array, as slurmdbd or squeue shows it.
type Task struct {
	// ID is the number of the job, with an array <job>_<task>.
	ID string
	// State is such as PENDING, RUNNING or COMPLETED.
	State string
	// Nodes is a host list.
	Nodes string
	// Reason is why the task waits; only squeue has it.
	Reason string
}

// Queue returns what squeue shows of a job; nothing when slurmctld has forgotten it or never knew it.
func (s *Session) Queue(ctx context.Context, job int) ([]Task, error) {
	out, err := s.Run(ctx, fmt.Sprintf("squeue --noheader --array --states=all --jobs=%d --format='%%i|%%T|%%N|%%r'", job))
	if err != nil && strings.Contains(err.Error(), "Invalid job id specified") {
		return nil, nil
	}
	return tasks(out), err
}

// Accounted returns what slurmdbd has about a job.
func (s *Session) Accounted(ctx context.Context, job int) ([]Task, error) {
	out, err := s.Run(ctx, fmt.Sprintf("sacct --noheader --allocations --array --parsable2 --jobs=%d --format=JobID,State,NodeList", job))
	return tasks(out), err
}

func tasks(table string) []Task {
	var out []Task
	for line := range strings.Lines(table) {
		fields := append(strings.Split(strings.TrimSpace(line), "|"), "")
		if len(fields) >= 4 {
			out = append(out, Task{ID: fields[0], State: fields[1], Nodes: fields[2], Reason: fields[3]})
		}
	}
	return out
}

// AwaitAccounted waits until so many tasks of a job have ended by slurmdbd, and returns them.
func (s *Session) AwaitAccounted(ctx context.Context, job, count int) ([]Task, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		all, err := s.Accounted(ctx, job)
		if err == nil && len(all) == count && allEnded(all) {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for job %d: %w; sacct says %v, error %w", job, context.Cause(ctx), all, err)
		case <-ticker.C:
		}
	}
}

func allEnded(all []Task) bool {
	for _, t := range all {
		switch t.State {
		case "PENDING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED", "":
			return false
		}
	}
	return true
}
