// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// accountingJobs distinguishes calls for the jobs of slurmdbd from those for slurmctld's.
const accountingJobs = "accounting jobs"

// routeAccounting takes /slurmdb/v0.0.45/jobs/ apart.
func routeAccounting(path string) (version string, found bool) {
	below, ok := strings.CutPrefix(path, "/slurmdb/")
	version, resource, _ := strings.Cut(strings.TrimSuffix(below, "/"), "/")
	return version, ok && resource == "jobs"
}

// getAccountingJobs lists the jobs that waited, ran or ended since start_time. slurmdbd goes on knowing jobs that slurmctld has forgotten.
func (s *Slurm) getAccountingJobs(w *shape, query url.Values) reply {
	seconds, err := strconv.ParseInt(query.Get("start_time"), 10, 64)
	if err != nil {
		seconds = s.clock.Add(-24 * time.Hour).Unix()
	}
	var jobs []job
	for _, j := range s.jobs {
		jobs = append(jobs, s.shown(j))
	}
	jobs = append(jobs, s.forgotten...)
	jobs = slices.DeleteFunc(jobs, func(j job) bool { return !j.end.IsZero() && j.state != "RUNNING" && j.end.Unix() < seconds })
	slices.SortFunc(jobs, func(a, b job) int { return int(a.id - b.id) })
	w.object("", func() {
		w.list("jobs", func() {
			for i := range jobs {
				w.accountingJob(&jobs[i])
			}
		})
		w.meta()
		w.errors()
		w.warnings()
	})
	return reply{status: http.StatusOK, body: w.b}
}

// accountingJob writes what slurmdbd has on a job, without steps and what the fake's jobs do not have.
func (w *shape) accountingJob(j *job) {
	now := w.slurm.clock
	start, end, nodes, reason := j.start, j.end, hostlist.Compress(slices.Clone(j.nodes)), j.reason
	if start.IsZero() { // as the real one has it
		start, end, nodes, reason = now, now, "None assigned", "None"
	}
	w.object("", func() {
		w.int("job_id", j.id)
		w.text("name", j.Name)
		w.text("user", w.slurm.nameOf(j.User))
		w.text("partition", j.Partition)
		w.text("nodes", nodes)
		w.text("cluster", w.slurm.options.Cluster)
		w.text("stdout", j.Output)
		w.text("stderr", "")
		w.int("allocation_nodes", int64(len(j.nodes)))
		w.exitCode("exit_code", j.exitCode, j.signal)
		w.object("comment", func() {
			w.text("administrator", "")
			w.text("job", j.Comment)
			w.text("system", "")
		})
		w.object("array", func() {
			w.int("job_id", 0)
			w.number("task_id", false, false, 0)
			w.text("task", "")
		})
		w.object("state", func() {
			w.texts("current", []string{j.state})
			w.text("reason", reason)
		})
		w.object("time", func() {
			w.int("submission", j.submitted.Unix())
			w.int("eligible", j.submitted.Unix())
			w.int("start", start.Unix())
			w.int("end", max(0, end.Unix()))
			w.number("limit", j.Limit > 0, j.Limit == 0, int64(j.Limit/time.Minute))
		})
		w.object("required", func() { w.int("CPUs", int64(max(1, j.CPUs)*j.Nodes)) })
		w.object("tres", func() {
			has := map[string]int64{}
			if !j.start.IsZero() {
				has = map[string]int64{"cpu": int64(max(1, j.CPUs) * len(j.nodes)), "node": int64(len(j.nodes)), "energy": -2}
			}
			w.resources("allocated", has)
			w.resources("requested", map[string]int64{"cpu": int64(max(1, j.CPUs) * j.Nodes), "node": int64(j.Nodes)})
		})
	})
}

// resources writes trackable resources. slurmdbd reports -2 for one that is not measured.
func (w *shape) resources(key string, has map[string]int64) {
	w.list(key, func() {
		for id, kind := range []string{"cpu", "mem", "energy", "node"} {
			if count, ok := has[kind]; ok {
				w.object("", func() {
					w.text("type", kind)
					w.text("name", "")
					w.int("id", int64(id+1))
					w.int("count", count)
				})
			}
		}
	})
}
