// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// partitionsAnswer lists the partitions that nodes are in.
func (w *shape) partitionsAnswer(now time.Time) {
	members := map[string][]string{}
	cpus := map[string]int{}
	for _, name := range w.slurm.order {
		n := w.slurm.nodes[name]
		for _, partition := range n.Partitions {
			members[partition] = append(members[partition], name)
			cpus[partition] += n.CPUs
		}
	}
	w.object("", func() {
		w.list("partitions", func() {
			for _, name := range slices.Sorted(maps.Keys(members)) {
				w.partition(name, members[name], cpus[name])
			}
		})
		w.time("last_update", now)
		w.meta()
		w.errors()
		w.warnings()
	})
}

func (w *shape) partition(name string, nodes []string, cpus int) {
	w.object("", func() {
		w.object("nodes", func() {
			w.text("allowed_allocation", "")
			w.text("configured", hostlist.Compress(slices.Clone(nodes)))
			w.int("total", int64(len(nodes)))
		})
		w.text("alternate", "")
		w.text("cluster", "")
		w.object("cpus", func() { w.int("total", int64(cpus)) })
		w.object("maximums", func() {
			w.number("nodes", false, true, 0)
			w.number("time", false, true, 0)
		})
		w.text("name", name)
		w.text("node_sets", "ALL")
		w.object("partition", func() { w.texts("state", []string{cmp.Or(w.slurm.partitions[name], "UP")}) })
	})
}

// SetPartition gives a partition that nodes are in another state, as its line in slurm.conf does: "UP", "DRAIN" …
func (s *Slurm) SetPartition(name, state string) {
	defer s.lock()()
	s.partitions[name] = state
	s.partTime = s.clock
}

// deletePartition deletes a partition without jobs that have not ended.
func (s *Slurm) deletePartition(w *shape, user, name string) reply {
	var e *Error
	switch {
	case user != "slurm" && user != "root":
		e = &Error{Number: 2010, Text: "Invalid user id"}
	case !s.hasPartition(name):
		e = &Error{Number: 2000, Text: "Invalid partition name specified"}
	case s.inUse(name):
		e = &Error{Number: 2075, Text: "Partition is in use"}
	}
	if e != nil {
		return s.refuse(w.version, "Unable to delete partition", e)
	}
	for _, n := range s.nodes {
		n.Partitions = slices.DeleteFunc(slices.Clone(n.Partitions), func(p string) bool { return p == name })
	}
	s.partTime, s.nodeTime = s.clock, s.clock
	s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "delete partition", Name: name})
	w.result()
	return reply{status: http.StatusOK, body: w.b}
}

// inUse reports whether a job that has not ended is in a partition.
func (s *Slurm) inUse(partition string) bool {
	for _, j := range s.jobs {
		if j.Partition == partition && (j.state == "PENDING" || j.state == "RUNNING" || j.state == "SUSPENDED") {
			return true
		}
	}
	return false
}

// diagAnswer writes slurmctld's diagnostics.
func (w *shape) diagAnswer(now time.Time) {
	pending, running := 0, 0
	for _, j := range w.slurm.jobs {
		switch j.state {
		case "PENDING":
			pending++
		case "RUNNING":
			running++
		}
	}
	w.object("", func() {
		w.object("statistics", func() {
			w.time("req_time", now)
			w.time("req_time_start", w.slurm.booted)
			w.int("server_thread_count", 1)
			w.int("agent_queue_size", 0)
			w.int("schedule_cycle_last", 1000)
			w.int("jobs_pending", int64(pending))
			w.int("jobs_running", int64(running))
		})
		w.meta()
		w.errors()
		w.warnings()
	})
}

// jobStatesAnswer has the states of all jobs, or of those whose numbers are asked for. What 26.05 sends is not what is published: "state" for "job_state", and
// numbers as texts.
func (w *shape) jobStatesAnswer(asked []string) {
	w.object("", func() {
		w.list("jobs", func() {
			for _, id := range slices.Sorted(maps.Keys(w.slurm.jobs)) {
				if len(asked) > 0 && !slices.Contains(asked, strconv.FormatInt(id, 10)) {
					continue
				}
				w.object("", func() {
					w.text("job_id", strconv.FormatInt(id, 10))
					w.texts("state", w.slurm.states(w.slurm.jobs[id]))
				})
			}
		})
		w.meta()
		w.errors()
		w.warnings()
	})
}
