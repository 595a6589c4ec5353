// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// Submission is a batch job to submit. What is empty is left to Slurm.
type Submission struct {
	Name string
	// Script is the batch script, with its first line "#!…". Slurm reads its #SBATCH lines only in sbatch, not here.
	Script string
	// Partition is where it runs.
	Partition string
	// Nodes are the nodes that it must have, all of them; see sbatch(1), --nodelist.
	Nodes []string
	// Reservation is the reservation to run in.
	Reservation string
	// Comment is free text that lists of jobs show. It tells the jobs of one run from others.
	Comment string
	// TimeLimit is counted in whole minutes, rounded up; see sbatch(1), --time. Zero is the partition's default.
	TimeLimit time.Duration
	// Directory is the working directory, which Slurm wants. Output is the path of the output; see sbatch(1), "filename pattern".
	Directory, Output string
	// Environment are variables as NAME=value. Slurm wants one at least.
	Environment []string
}

// submittedJob is a Submission in the words of slurmrestd.
type submittedJob struct {
	Name        string   `json:"name,omitempty"`
	Script      string   `json:"script"`
	Partition   string   `json:"partition,omitempty"`
	Nodes       []string `json:"required_nodes,omitempty"`
	Minimum     int      `json:"minimum_nodes,omitempty"`
	Reservation string   `json:"reservation,omitempty"`
	Comment     string   `json:"comment,omitempty"`
	TimeLimit   *number  `json:"time_limit,omitempty"`
	Directory   string   `json:"current_working_directory"`
	Output      string   `json:"standard_output,omitempty"`
	Environment []string `json:"environment"`
}

// forSlurm is the submission in the words of slurmrestd.
func (s Submission) forSlurm() submittedJob {
	return submittedJob{
		Name: s.Name, Script: s.Script, Partition: s.Partition, Nodes: s.Nodes, Minimum: len(s.Nodes), Reservation: s.Reservation,
		Comment: s.Comment, TimeLimit: minutes(s.TimeLimit), Directory: s.Directory, Output: s.Output, Environment: s.Environment,
	}
}

// minutes is a time in whole minutes, rounded up; zero is left out.
func minutes(d time.Duration) *number {
	if d <= 0 {
		return nil
	}
	return &number{Set: true, Number: int64((d + time.Minute - 1) / time.Minute)}
}

// SubmitJob submits a batch job as the user of an issuer's tokens, and returns its number. It is not repeated when no answer comes:
// the job may be there.
//
// A user that slurmctld cannot look up is Unauthorized in 26.05. 24.11 accepts the job for uid 99 and never runs it; JobRecord.User
// is empty then.
func (c *Client) SubmitJob(ctx context.Context, as token.Issuer, s Submission) (id int64, err error) {
	fail := func(err error) (int64, error) {
		return 0, fmt.Errorf("submitting a job %s to Slurm by %s: %w", shorten(s.Name, 200), c, err)
	}
	switch {
	case as == nil:
		return fail(errors.New("it has no user"))
	case s.Script == "" || s.Directory == "" || len(s.Environment) == 0:
		return fail(errors.New("it has no script, no working directory or no environment"))
	}
	body, err := encode(map[string]submittedJob{"job": s.forSlurm()})
	if err != nil {
		return fail(err)
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "job/submit", body: body, as: as, decode: func(r *reader) (errs []slurmError, err error) {
		id, errs, err = decodeSubmitted(r)
		return errs, err
	}})
	if err != nil {
		return fail(err)
	}
	return id, nil
}

// errNoJob is an answer about a job without a job.
var errNoJob = errors.New("the answer has no job")

// decodeSubmitted reads an answer to POST job/submit.
func decodeSubmitted(r *reader) (id int64, errs []slurmError, err error) {
	var a answer
	err = a.decode(r, func(key string) bool {
		if key != "job_id" || r.peek() == 'n' {
			return false
		}
		id = r.quantity().number
		return true
	})
	if err == nil && len(a.errors) == 0 && id <= 0 {
		err = errNoJob
	}
	return id, a.errors, err
}
