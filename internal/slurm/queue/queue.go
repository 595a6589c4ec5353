// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queue sums jobs up by partition: how many wait and run, what they ask for, and why they wait.
package queue

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/tres"
)

const (
	// maxReasons is how many reasons are counted separately in one partition.
	maxReasons = 3
	// MaxWaiting is how many of the jobs that wait are listed one by one.
	MaxWaiting = 10
)

// Summary is a queue in short.
type Summary struct {
	// Partitions are those that jobs are in, or wait for, by name.
	Partitions []Partition
	// Waiting are the jobs that have waited longest, MaxWaiting at most.
	Waiting []Job
	// Pending is how many jobs wait; a job that waits for several partitions is counted once.
	Pending int
}

// Partition is the queue of one partition. A job that waits for several partitions is part of each.
type Partition struct {
	Name string
	// Pending, Running and Other are jobs that have not ended. Each task of an array is one. Other jobs are completing, suspended, or in a
	// state that is not known here.
	Pending, Running, Other int
	// Wanted is what the pending jobs ask for, and Used what running and other jobs have.
	Wanted, Used Resources
	// Oldest is the submit time of the job that has waited longest, by Slurm's clock; zero if none waits.
	Oldest time.Time
	// Reasons are why jobs wait, the most frequent first. OtherReasons is the number of jobs that wait for other reasons.
	Reasons      []Reason
	OtherReasons int
}

// Resources are sums over jobs. Nodes are counted once for each job, so those that jobs share are counted more than once. GPUs are 0
// where AccountingStorageTRES does not name gres/gpu.
type Resources struct{ Nodes, CPUs, GPUs int64 }

// Reason is why jobs wait, in Slurm's word (squeue(1), JOB REASON CODES), and how many do.
type Reason struct {
	Text string
	Jobs int
}

// Job is a job that waits.
type Job struct {
	// Label is the number as squeue shows it: "812", "18_[4-9%2]".
	Label     string
	User      string
	Partition string
	// State is the base state and its flags, such as "PENDING".
	State  string
	Reason string
	// Wanted is what it asks for; of an array, what each task does.
	Wanted    Resources
	Submitted time.Time
	// Tasks is how many jobs it stands for: of an array, the tasks that have not started.
	Tasks int
}

// Summarize sums jobs up. tasks has the number of tasks of an array that have not started; it may be nil, and then each record is one
// job. Jobs that have ended are left out.
func Summarize(jobs []*rest.JobRecord, tasks map[int64]int) Summary {
	var out Summary
	partitions := map[string]*counted{}
	count := func(j *rest.JobRecord) int {
		if j.ArrayJob == 0 || !pending(j) {
			return 1
		}
		return max(1, tasks[j.ID])
	}
	var waiting []*rest.JobRecord
	for _, j := range jobs {
		if rest.Finished(j.State) {
			continue
		}
		n := count(j)
		if pending(j) {
			out.Pending += n
			waiting = append(waiting, j)
		}
		for name := range strings.SplitSeq(j.Partition, ",") {
			p := partitions[name]
			if p == nil {
				p = &counted{Partition: Partition{Name: name}, reasons: map[string]int{}}
				partitions[name] = p
			}
			p.add(j, n)
		}
	}
	for _, p := range partitions {
		out.Partitions = append(out.Partitions, p.done())
	}
	slices.SortFunc(out.Partitions, func(a, b Partition) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(waiting, func(a, b *rest.JobRecord) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	for _, j := range waiting[:min(len(waiting), MaxWaiting)] {
		out.Waiting = append(out.Waiting, Job{
			Label: label(j), User: user(j), Partition: j.Partition, State: strings.Join(j.State, "+"), Reason: j.Reason,
			Wanted: resources(j), Submitted: j.Submitted, Tasks: count(j),
		})
	}
	return out
}

// pending reports whether a job waits and holds no nodes.
func pending(j *rest.JobRecord) bool { return len(j.State) > 0 && !rest.Occupies(j.State) }

// counted is a partition while jobs are counted.
type counted struct {
	Partition
	reasons map[string]int
}

// add counts a record that stands for n jobs.
func (c *counted) add(j *rest.JobRecord, n int) {
	switch {
	case pending(j):
		c.Pending += n
		c.Wanted.add(resources(j), n)
		c.reasons[j.Reason] += n
		if !j.Submitted.IsZero() && (c.Oldest.IsZero() || j.Submitted.Before(c.Oldest)) {
			c.Oldest = j.Submitted
		}
		return
	case slices.Contains(j.State, "RUNNING") && len(j.State) == 1:
		c.Running += n
	default:
		c.Other += n
	}
	c.Used.add(resources(j), n)
}

func (c *counted) done() Partition {
	for text, jobs := range c.reasons {
		c.Reasons = append(c.Reasons, Reason{Text: text, Jobs: jobs})
	}
	slices.SortFunc(c.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Text, b.Text))
	})
	if len(c.Reasons) > maxReasons {
		for _, r := range c.Reasons[maxReasons:] {
			c.OtherReasons += r.Jobs
		}
		c.Reasons = c.Reasons[:maxReasons]
	}
	return c.Partition
}

func (r *Resources) add(o Resources, n int) {
	r.Nodes += o.Nodes * int64(n)
	r.CPUs += o.CPUs * int64(n)
	r.GPUs += o.GPUs * int64(n)
}

// maxAmount bounds what one job may count for, so that no sum overflows whatever Slurm reports: 100 million of everything.
const maxAmount = 1e8

// resources are what a job has, or asks for.
func resources(j *rest.JobRecord) Resources {
	amount := func(name string) int64 { return int64(min(tres.Amount(j.TRES, name), maxAmount)) }
	cpus := min(max(j.CPUs, 0), maxAmount)
	if n := amount("cpu"); n > 0 {
		cpus = n
	}
	return Resources{Nodes: amount("node"), CPUs: cpus, GPUs: amount("gres/gpu")}
}

// label is the number of a job as squeue shows it.
func label(j *rest.JobRecord) string {
	if j.ArrayJob != 0 && j.ArrayTask != "" {
		return strconv.FormatInt(j.ArrayJob, 10) + "_[" + j.ArrayTask + "]"
	}
	return strconv.FormatInt(j.ID, 10)
}

// user is who has submitted a job, by name if slurmrestd has it.
func user(j *rest.JobRecord) string {
	switch {
	case j.User != "":
		return j.User
	case j.UserID == rest.Nobody:
		return "unknown"
	}
	return "uid " + strconv.FormatInt(j.UserID, 10)
}
