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

// Diag is slurmctld's report about itself, as sdiag prints it.
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
	// ByMessage and ByUser are the calls to slurmctld since Since, by their kind and by who made them.
	ByMessage, ByUser []Calls
}

// Calls are calls to slurmctld of one kind, or of one user.
type Calls struct {
	// Name is that of the kind ("REQUEST_SUBMIT_BATCH_JOB") or of the user, who may have none; ID is its number.
	Name string
	ID   int64
	// Count is how many there were, and Took how long slurmctld worked for them altogether.
	Count int64
	Took  time.Duration
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
		case "rpcs_by_message_type":
			d.ByMessage = r.calls("message_type", "type_id")
		case "rpcs_by_user":
			d.ByUser = r.calls("user", "user_id")
		default:
			r.skip()
		}
	}
	return d
}

// calls reads a list of calls, whose names and numbers have these keys.
func (r *reader) calls(name, id string) []Calls {
	var list []Calls
	for ok := r.open('['); ok && r.admit(len(list), maxEntries, "kinds of calls"); ok = r.more('[') {
		var c Calls
		for ok := r.open('{'); ok; ok = r.more('{') {
			switch key := string(r.key()); key {
			case name:
				c.Name = r.text("")
			case id:
				c.ID = r.integer()
			case "count":
				c.Count = r.integer()
			case "total_time":
				c.Took = time.Duration(r.integer()) * time.Microsecond
			default:
				r.skip()
			}
		}
		list = append(list, c)
	}
	return list
}
