// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"strconv"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/tres"
)

// maxNodesOfJob is how many nodes of one job are shown.
const maxNodesOfJob = rest.MaxNodes

// jobs writes the metrics of jobs at a time, by Slurm's clock. comments are those of the operator on nodes.
func (t *text) jobs(now time.Time, list []*rest.JobRecord, comments map[string]node.Comment) {
	ids := make([]string, len(list))
	for i, j := range list {
		ids[i] = strconv.FormatInt(j.ID, 10)
	}
	t.start("slurm_job_info", gauge, "1 for each Slurm job, with its state and what is known of it. Times are seconds since 1970.")
	for i, j := range list {
		t.jobInfo(ids[i], j)
	}
	t.start("slurm_node_job", gauge, "1 for each node of each Slurm job.")
	for i, j := range list {
		nodes, err := hostlist.Expand(j.Nodes, maxNodesOfJob)
		if err != nil {
			continue // what Slurm writes about a job that waits is no list of nodes
		}
		for _, name := range nodes {
			t.add(1, label{"job_id", ids[i]}, label{"node_name", name}, label{"nodeset_name", comments[name].NodeSetName}, label{"nvlink_instance_group", comments[name].NVLinkInstanceGroup})
		}
	}
	t.start("slurm_job_duration_seconds", gauge, "How long the job has run, or did run.")
	for i, j := range list {
		if seconds := ran(now, j).Seconds(); seconds > 0 {
			t.add(seconds, label{"job_id", ids[i]})
		}
	}
	t.start("slurm_job_cpus", gauge, "CPUs that the job has, or waits for.")
	for i, j := range list {
		t.add(float64(j.CPUs), label{"job_id", ids[i]})
	}
	t.start("slurm_job_memory_bytes", gauge, "Memory that the job has, or waits for.")
	for i, j := range list {
		t.add(tres.Amount(j.TRES, "mem"), label{"job_id", ids[i]})
	}
}

// ran returns how long a job has run, or did run; zero when it never has.
func ran(now time.Time, j *rest.JobRecord) time.Duration {
	switch {
	case j.Start.IsZero():
		return 0
	case rest.Finished(j.State):
		if j.End.IsZero() {
			return 0
		}
		return j.End.Sub(j.Start)
	case rest.Occupies(j.State):
		return now.Sub(j.Start)
	}
	return 0 // it waits, and is expected to start
}

func (t *text) jobInfo(id string, j *rest.JobRecord) {
	state, mail, task, finished := "", j.Mail, j.ArrayTask, ""
	if len(j.State) > 0 {
		state = j.State[0]
	}
	if mail == j.User {
		mail = "" // Slurm fills it in
	}
	if _, err := strconv.Atoi(task); err != nil {
		task = "" // several tasks wait
	}
	end := j.Limit
	if rest.Finished(j.State) {
		end, finished = j.End, seconds(j.End)
	}
	t.add(1,
		label{"job_id", id},
		label{"job_state", state},
		label{"job_state_reason", j.Reason},
		label{"slurm_partition", j.Partition},
		label{"job_name", j.Name},
		label{"user_name", j.User},
		label{"user_mail", mail},
		label{"user_id", userID(j.UserID)},
		label{"standard_error", j.ErrorOutput},
		label{"standard_output", j.Output},
		label{"array_job_id", strconv.FormatInt(j.ArrayJob, 10)},
		label{"array_task_id", task},
		label{"submit_time", seconds(j.Submitted)},
		label{"start_time", seconds(j.Start)},
		label{"end_time", seconds(end)},
		label{"finished_time", finished},
	)
}

// userID returns a uid as a label; empty when it is not known.
func userID(id int64) string {
	if id == rest.NoUserID {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// seconds returns a time as a label; empty when it is not known.
func seconds(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10)
}
