// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Diag is what slurmctld says of itself, as sdiag does.
type Diag struct {
	// Time is slurmctld's time of the answer, Since when it began to count.
	Time  time.Time
	Since time.Time
	// ServerThreads are answering requests now, AgentQueue are messages that wait to be sent to nodes.
	ServerThreads int
	AgentQueue    int
	// JobsPending and JobsRunning are counted now and then only.
	JobsPending int
	JobsRunning int
	// ScheduleCycle is how long the last cycle of the main scheduler took.
	ScheduleCycle time.Duration
}

var errNoStatistics = errors.New("the answer has no statistics")

// Diag asks slurmctld how it is.
func (c *Client) Diag(ctx context.Context) (Diag, error) {
	var d Diag
	err := c.get(ctx, "diag/", func(r *reader) (errs []slurmError, err error) {
		d, errs, err = decodeDiag(r)
		return errs, err
	})
	if err != nil {
		return Diag{}, fmt.Errorf("asking slurmctld through %s how it is: %w", c, err)
	}
	return d, nil
}

func decodeDiag(r *reader) (Diag, []slurmError, error) {
	var a answer
	var d Diag
	found := false
	err := a.decode(r, func(key string) bool {
		if key != "statistics" || r.peek() == 'n' {
			return false
		}
		found, d = true, r.diag()
		return true
	})
	if err == nil && len(a.errors) == 0 && !found {
		err = errNoStatistics
	}
	return d, a.errors, err
}

// get makes a call that changes nothing.
func (c *Client) get(ctx context.Context, path string, decode func(*reader) ([]slurmError, error)) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, repeatable: true, decode: decode})
	return err
}

func (r *reader) diag() Diag {
	var d Diag
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "req_time":
			d.Time = r.time()
		case "req_time_start":
			d.Since = r.time()
		case "server_thread_count":
			d.ServerThreads = int(r.integer())
		case "agent_queue_size":
			d.AgentQueue = int(r.integer())
		case "jobs_pending":
			d.JobsPending = int(r.integer())
		case "jobs_running":
			d.JobsRunning = int(r.integer())
		case "schedule_cycle_last":
			d.ScheduleCycle = time.Duration(r.integer()) * time.Microsecond
		default:
			r.skip()
		}
	}
	return d
}
