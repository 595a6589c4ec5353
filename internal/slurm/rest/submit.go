// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Submission is a batch job to submit, as the user of the token. What is empty is left to Slurm.
type Submission struct {
	Name string
	// Script is the batch script, with its first line "#!…". Slurm reads its #SBATCH lines only in sbatch, not here.
	Script string
	// Partition is where it runs.
	Partition string
	// Nodes are the nodes that it must have, all of them; see sbatch(1), --nodelist.
	Nodes []string
	// Array makes it an array: "0-3"; see sbatch(1), --array.
	Array string
	// Reservation is the reservation to run in.
	Reservation string
	// Directory is the working directory, which Slurm wants. Output is the path of the output; see sbatch(1), "filename pattern".
	Directory, Output string
	// Environment are variables as NAME=value. Slurm wants one at least.
	Environment []string
}

// SubmitJob submits a batch job and returns its number, which for an array is that of the array. It is not repeated when no answer
// comes: the job may be there.
func (c *Client) SubmitJob(ctx context.Context, s Submission) (id int64, err error) {
	fail := func(err error) (int64, error) {
		return 0, fmt.Errorf("submitting a job %s to Slurm by %s: %w", shorten(s.Name, 200), c, err)
	}
	if s.Script == "" || s.Directory == "" || len(s.Environment) == 0 {
		return fail(errors.New("it has no script, no working directory or no environment"))
	}
	type job struct {
		Name        string   `json:"name,omitempty"`
		Script      string   `json:"script"`
		Partition   string   `json:"partition,omitempty"`
		Nodes       []string `json:"required_nodes,omitempty"`
		Minimum     int      `json:"minimum_nodes,omitempty"`
		Array       string   `json:"array,omitempty"`
		Reservation string   `json:"reservation,omitempty"`
		Directory   string   `json:"current_working_directory"`
		Output      string   `json:"standard_output,omitempty"`
		Environment []string `json:"environment"`
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]job{"job": {
		Name: s.Name, Script: s.Script, Partition: s.Partition, Nodes: s.Nodes, Minimum: len(s.Nodes), Array: s.Array, Reservation: s.Reservation,
		Directory: s.Directory, Output: s.Output, Environment: s.Environment,
	}}); err != nil {
		return fail(err)
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "job/submit", body: body.Bytes(), decode: func(r *reader) (errs []slurmError, err error) {
		id, errs, err = decodeSubmitted(r)
		return errs, err
	}})
	if err != nil {
		return fail(err)
	}
	return id, nil
}

// errNoJob is an answer to a submission without a job.
var errNoJob = errors.New("the answer has no number of a job")

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
