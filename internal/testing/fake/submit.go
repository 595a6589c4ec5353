// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A submission is the body of POST job/submit, as far as the fake reads it.
type submission struct {
	Job struct {
		Name        string   `json:"name"`
		Script      string   `json:"script"`
		Partition   string   `json:"partition"`
		Nodes       []string `json:"required_nodes"`
		Minimum     int      `json:"minimum_nodes"`
		Reservation string   `json:"reservation"`
		Comment     string   `json:"comment"`
		TimeLimit   struct {
			Number int64 `json:"number"`
		} `json:"time_limit"`
		Requeue     *bool    `json:"requeue"`
		Directory   string   `json:"current_working_directory"`
		Output      string   `json:"standard_output"`
		Environment []string `json:"environment"`
	} `json:"job"`
}

// submit queues a job that came over HTTP. Options.Script sets how long it runs.
func (s *Slurm) submit(w *shape, user string, body []byte) reply {
	var message submission
	if json.Unmarshal(body, &message) != nil {
		return reply{status: http.StatusBadRequest, body: []byte("Failure during parsing"), text: true}
	}
	spec := message.Job
	job := Job{
		Name: spec.Name, User: user, Partition: spec.Partition, NodeList: spec.Nodes, Nodes: max(1, spec.Minimum), Reservation: spec.Reservation,
		Comment: spec.Comment, Limit: time.Duration(spec.TimeLimit.Number) * time.Minute, CPUs: 1, Directory: spec.Directory, Output: spec.Output,
		KillOnNodeFail: spec.Requeue != nil && !*spec.Requeue,
	}
	if s.options.Script != nil {
		job.Duration, job.ExitCode = s.options.Script(job)
	}
	unknown := slices.Contains(s.options.UnknownUsers, user)
	if spec.Script == "" {
		return s.refuse(w.version, "Batch job script empty or missing", &Error{Number: 2009, Text: "Job script not specified"})
	}
	if unknown && !s.old() {
		return s.result(w.version, http.StatusInternalServerError,
			&Error{6010, "Batch job submission failed", "Rejecting authentication of user nobody or group nobody"})
	}
	if e := s.misfit(job, spec.Environment); e != nil {
		return s.refuse(w.version, "Batch job submission failed", e)
	}
	id := s.queue(job)
	if unknown { // 24.11 takes the job for a uid without a name, and never runs it
		s.jobs[id].User, s.jobs[id].held = "", true
	}
	s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "submit", Name: job.Name, Nodes: join(job.NodeList), Comment: &job.Comment})
	s.schedule()
	w.object("", func() {
		w.int("job_id", id)
		w.text("step_id", "batch")
		w.text("job_submit_user_msg", "")
		w.meta()
		w.errors()
		w.warnings()
	})
	return reply{status: http.StatusOK, body: w.b}
}

// misfit is why slurmctld does not take a job. Some refusals use up a number.
func (s *Slurm) misfit(job Job, environment []string) *Error {
	switch {
	case job.Directory == "":
		return &Error{Number: 2063, Text: "Job cannot be submitted without the current working directory specified."}
	case job.Partition != "" && !s.hasPartition(job.Partition):
		return &Error{Number: 2000, Text: "Invalid partition name specified"}
	case slices.ContainsFunc(job.NodeList, func(name string) bool { return s.nodes[name] == nil }):
		return &Error{Number: 2018, Text: "Invalid node name specified"}
	case job.Reservation != "" && s.reservations[job.Reservation] == nil:
		s.lastJob++
		return &Error{Number: 2053, Text: "Requested reservation is invalid"}
	case len(environment) == 0 && s.old():
		s.lastJob++
		return &Error{Number: 2019, Text: "I/O error writing script/environment to file"}
	case len(environment) == 0:
		s.lastJob++
		return &Error{Number: 2127, Text: "Environment is missing in job"}
	}
	return nil
}

// hasPartition reports whether there is a partition: main, or one that a node is in.
func (s *Slurm) hasPartition(name string) bool {
	if name == "main" {
		return true
	}
	for _, n := range s.nodes {
		if slices.Contains(n.Partitions, name) {
			return true
		}
	}
	return false
}

// getJob shows one job.
func (s *Slurm) getJob(w *shape, number string) reply {
	id, err := strconv.ParseInt(number, 10, 64)
	j := s.jobs[id]
	if err != nil || j == nil {
		return s.result(w.version, http.StatusNotFound, &Error{2017, "Unable to query JobId=" + number, "Invalid job id specified"})
	}
	w.jobsAnswer([]job{s.shown(j)}, s.clock, false)
	return reply{status: http.StatusOK, body: w.b}
}

// cancelJobs cancels the jobs of a body. "status" has what becomes of each. A real slurmctld that is asked by somebody who does not own
// the jobs answers nobody afterwards; this one only refuses.
func (s *Slurm) cancelJobs(w *shape, user string, body []byte) reply {
	var message struct {
		Jobs []string `json:"jobs"`
	}
	if json.Unmarshal(body, &message) != nil {
		return reply{status: http.StatusBadRequest, body: []byte("Failure during parsing"), text: true}
	}
	failed := map[string]Error{}
	for _, number := range message.Jobs {
		id, _ := strconv.ParseInt(number, 10, 64)
		j := s.jobs[id]
		switch {
		case j == nil:
			failed[number] = Error{Number: 2017, Text: "Invalid job id specified"}
			continue
		case user != "slurm" && user != "root" && user != j.User:
			return s.result(w.version, http.StatusForbidden, &Error{1, "Signal request failed", "Operation not permitted"})
		case j.state != "PENDING" && j.state != "RUNNING" && j.state != "SUSPENDED":
			failed[number] = Error{Number: 2021, Text: "Job/step already completing or completed"}
			continue
		}
		s.end(j, "CANCELLED")
		s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "cancel", Name: j.Name, Nodes: join(j.NodeList)})
	}
	w.canceledAnswer(message.Jobs, failed)
	return reply{status: http.StatusOK, body: w.b}
}

// canceledAnswer writes what could not be canceled.
func (w *shape) canceledAnswer(asked []string, failed map[string]Error) {
	w.object("", func() {
		w.list("status", func() {
			for _, number := range asked {
				e, ok := failed[number]
				if !ok {
					continue
				}
				w.object("", func() {
					w.object("error", func() {
						w.text("string", e.Text)
						w.int("code", int64(e.Number))
						w.text("message", e.Text)
					})
					w.text("step_id", number)
					w.number("job_id", false, false, 0)
					w.object("federation", func() { w.text("sibling", "") })
				})
			}
		})
		w.meta()
		w.errors()
		w.warnings()
	})
}

// join is a list with commas.
func join(names []string) string { return strings.Join(names, ",") }
