// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/queue"
)

const (
	// freshQueueAge is the age up to which the page does not show how old the jobs are.
	freshQueueAge = 30 * time.Second
	// oldQueueAge is the age from which the page warns. Of many jobs Slurm is asked less often than every ten seconds.
	oldQueueAge = 5 * time.Minute
)

// Jobs is what the page shows of the queue.
type Jobs struct {
	// Unknown is why nothing is shown; empty when something is.
	Unknown string
	// Age is how old it is. Old is true if it is too old to be relied on, or Slurm did not answer when it was asked last.
	Age string
	Old bool
	// Why is what went wrong.
	Why string
	// Missing is how many jobs are not counted, because only their state is known.
	Missing    int
	Partitions []PartitionRow
	Waiting    []JobRow
	// More is how many jobs wait that are not listed.
	More int
}

// PartitionRow is the queue of a partition.
type PartitionRow struct {
	Name string
	// Nodes is how many nodes Slurm has in it, or had in its last answer; "unknown" if it has not answered.
	Nodes                   string
	Pending, Running, Other int
	// Wanted and Used are like "3 nodes, 12 CPUs, 2 GPUs".
	Wanted, Used string
	// Longest is how long the oldest job has waited.
	Longest string
	// Reasons are like "Resources 12, Priority 3".
	Reasons string
}

// JobRow is a job that waits.
type JobRow struct{ Label, User, Partition, State, Reason, Wanted, Waits string }

// jobs makes the queue of a page. Partitions without a job are part of it.
//
//	what is known                        what is shown
//	there is no Slurm cache                     that
//	Slurm has not answered, with error   the error
//	Slurm has not been asked yet         that it is asked while the page is followed
//	anything else                        the jobs, their age, and the error of the last question if there was one
func jobs(f Facts) Jobs {
	q := f.Queue
	out := Jobs{Why: oneLine(q.Why)}
	switch {
	case !f.Slurm.Connected:
		return Jobs{Unknown: "The operator has no connection to Slurm, so nothing is known of jobs."}
	case q.Taken.IsZero() && q.Why != "":
		out.Unknown = "Slurm was asked for jobs, and has not answered."
		return out
	case q.Taken.IsZero():
		out.Unknown = "Nothing is known of jobs yet. Slurm is asked for them while somebody follows this page."
		return out
	}
	out.Age, out.Missing = age(f.Now, q.Taken, freshQueueAge), q.Missing
	out.Old = q.Why != "" || f.Now.Sub(q.Taken) >= oldQueueAge
	now := f.Now.Add(f.Slurm.Ahead)
	known := map[string]bool{}
	for _, p := range q.Summary.Partitions {
		known[p.Name] = true
		nodes := "unknown"
		if !f.Slurm.Taken.IsZero() {
			nodes = strconv.Itoa(f.Partitions[p.Name])
		}
		out.Partitions = append(out.Partitions, partitionRow(p, nodes, now))
	}
	for name, nodes := range f.Partitions {
		if !known[name] {
			out.Partitions = append(out.Partitions, PartitionRow{Name: name, Nodes: strconv.Itoa(nodes)})
		}
	}
	slices.SortFunc(out.Partitions, func(a, b PartitionRow) int { return strings.Compare(a.Name, b.Name) })
	out.More = q.Summary.Pending
	for _, j := range q.Summary.Waiting {
		out.Waiting = append(out.Waiting, JobRow{
			Label: oneLine(j.Label), User: oneLine(j.User), Partition: oneLine(j.Partition), State: j.State, Reason: oneLine(j.Reason),
			Wanted: resources(j.Wanted), Waits: waited(now, j.Submitted),
		})
		out.More -= j.Tasks
	}
	return out
}

func partitionRow(p queue.Partition, nodes string, now time.Time) PartitionRow {
	row := PartitionRow{
		Name: p.Name, Nodes: nodes, Pending: p.Pending, Running: p.Running, Other: p.Other, Wanted: resources(p.Wanted), Used: resources(p.Used),
		Longest: waited(now, p.Oldest),
	}
	var reasons []string
	for _, r := range p.Reasons {
		text := oneLine(r.Text)
		if text == "" {
			text = "no reason"
		}
		reasons = append(reasons, fmt.Sprintf("%s %d", text, r.Jobs))
	}
	if p.OtherReasons > 0 {
		reasons = append(reasons, fmt.Sprintf("others %d", p.OtherReasons))
	}
	row.Reasons = strings.Join(reasons, ", ")
	return row
}

// resources returns what jobs have or want, without those of number zero; empty for nothing.
func resources(r queue.Resources) string {
	var out []string
	for _, part := range []struct {
		n        int64
		one, all string
	}{{r.Nodes, "node", "nodes"}, {r.CPUs, "CPU", "CPUs"}, {r.GPUs, "GPU", "GPUs"}} {
		switch {
		case part.n == 1:
			out = append(out, "1 "+part.one)
		case part.n > 0:
			out = append(out, fmt.Sprintf("%d %s", part.n, part.all))
		}
	}
	return strings.Join(out, ", ")
}

// waited returns how long a job has waited, the less precisely the longer; empty if that is not known.
func waited(now, submitted time.Time) string {
	if submitted.IsZero() {
		return ""
	}
	switch d := now.Sub(submitted); {
	case d < time.Minute:
		return "less than 1 min"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}
