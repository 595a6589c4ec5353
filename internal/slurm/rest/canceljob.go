// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// codeJobDone is ESLURM_ALREADY_DONE: the job has ended, or is about to.
const codeJobDone = 2021

// CancelJobs ends jobs by one call. Those that have ended, and those that slurmctld does not have, are successes.
//
// The client's user must be root or SlurmUser. When a user cancels the job of another one in this way, slurmctld of 24.11.5 and of
// 26.05.5 refuses, and answers nobody afterwards.
func (c *Client) CancelJobs(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	var body struct {
		Jobs []string `json:"jobs"`
	}
	for _, id := range ids {
		body.Jobs = append(body.Jobs, strconv.FormatInt(id, 10))
	}
	encoded, err := encode(body)
	if err == nil {
		_, err = c.do(ctx, call{method: http.MethodDelete, path: "jobs/", body: encoded, decode: decodeCanceled})
	}
	if err != nil {
		return fmt.Errorf("canceling %d jobs of Slurm by %s: %w", len(ids), c, err)
	}
	return nil
}

// decodeCanceled reads an answer to DELETE jobs, which has the errors of jobs in a list of its own.
func decodeCanceled(r *reader) ([]slurmError, error) {
	var a answer
	var failed []slurmError
	found := false
	err := a.decode(r, func(key string) bool {
		if key != "status" {
			return false
		}
		found = true
		for ok := r.open('['); ok; ok = r.more('[') {
			if e := r.jobStatus(); e.number != 0 && e.number != CodeInvalidJobID && e.number != codeJobDone && len(failed) < maxErrors {
				failed = append(failed, e)
			}
		}
		return true
	})
	if err == nil && len(a.errors) == 0 && !found {
		err = errNoStatus
	}
	return append(a.errors, failed...), err
}

// errNoStatus is for an answer to a cancellation without what became of the jobs.
var errNoStatus = errors.New("the answer does not say what became of the jobs")

// jobStatus reads what became of one job.
func (r *reader) jobStatus() (e slurmError) {
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "step_id":
			e.description = "job " + string(r.bytes())
		case "error":
			for ok := r.open('{'); ok; ok = r.more('{') {
				switch string(r.key()) {
				case "code":
					e.number = int(r.quantity().number)
				case "string":
					e.text = string(r.bytes())
				default:
					r.skip()
				}
			}
		default:
			r.skip()
		}
	}
	return e
}
