// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// NoUserID is the UserID of jobs from slurmdbd, which knows users by their names.
const NoUserID = -1

// AccountingJobs lists the jobs that slurmdbd has and that waited, ran or ended since a time (sacct(1), --starttime). slurmrestd sends 3 kB
// for each. Their Limit is zero without a time limit, or before they run. It is Refused where slurmctld has no slurmdbd.
func (c *Client) AccountingJobs(ctx context.Context, since time.Time) ([]JobRecord, error) {
	var list []JobRecord
	_, err := c.do(ctx, call{
		method: http.MethodGet, daemon: slurmdbd, path: "jobs/", longest: c.options.MaxBytes, repeatable: true,
		query: url.Values{"start_time": {strconv.FormatInt(since.Unix(), 10)}, "skip_steps": {"true"}},
		decode: func(r *reader) (errs []slurmError, err error) {
			list, errs, err = decodeAccountingJobs(r)
			return errs, err
		},
	})
	if err != nil {
		return nil, fmt.Errorf("listing jobs of slurmdbd by %s: %w", c, err)
	}
	return list, nil
}

func decodeAccountingJobs(r *reader) ([]JobRecord, []slurmError, error) {
	var a answer
	var list []JobRecord
	found := false
	err := a.decode(r, func(key string) bool {
		if key != "jobs" || r.peek() == 'n' {
			return false
		}
		found, list = true, nil
		for ok := r.open('['); ok; ok = r.more('[') {
			if j := r.accountingJob(); r.admit(len(list), maxEntries, "jobs of slurmdbd") {
				list = append(list, j)
			}
		}
		return true
	})
	switch {
	case err != nil || len(a.errors) > 0:
		return nil, a.errors, err
	case !found:
		return nil, nil, errNoList
	}
	return list, nil, nil
}

func (r *reader) accountingJob() JobRecord {
	j := JobRecord{UserID: NoUserID}
	var times accountingTimes
	var resources accountingTRES
	var required int64
	if r.peek() == 'n' {
		r.fail("expected '{', found null")
	}
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "job_id":
			j.ID = r.quantity().number
		case "name":
			j.Name = r.text("")
		case "user":
			j.User = r.shared()
		case "partition":
			j.Partition = r.shared()
		case "nodes":
			j.Nodes = r.text("")
		case "stdout":
			j.Output = r.text("")
		case "stderr":
			j.ErrorOutput = r.text("")
		case "exit_code":
			j.ExitCode, j.Signal = r.exitCode()
		case "array":
			j.ArrayJob, j.ArrayTask = r.accountingArray()
		case "comment":
			r.member("job", func() { j.Comment = r.text("") })
		case "state":
			j.State, j.Reason = r.accountingState()
		case "time":
			times = r.accountingTimes()
		case "tres":
			resources = r.accountingTRES()
		case "required":
			r.member("CPUs", func() { required = r.quantity().number })
		default:
			r.skip()
		}
	}
	j.Submitted = times.submitted
	if len(j.State) > 0 && j.State[0] != "PENDING" { // slurmdbd gives the present time as the start of a job that waits
		j.Start = times.start
	}
	switch {
	case Finished(j.State):
		j.End = times.end
	case !j.Start.IsZero() && times.limit.set && !times.limit.infinite:
		j.Limit = j.Start.Add(time.Duration(times.limit.number) * time.Minute)
	}
	j.TRES, j.CPUs = cmp.Or(resources.allocated, resources.requested), cmp.Or(resources.cpus, required)
	if j.Nodes == noNodes {
		j.Nodes = ""
	}
	return j
}

// noNodes is what slurmdbd has of a job that never had any.
const noNodes = "None assigned"

type accountingTimes struct {
	submitted, start, end time.Time
	limit                 quantity // minutes
}

func (r *reader) accountingTimes() (t accountingTimes) {
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "submission":
			t.submitted = r.time()
		case "start":
			t.start = r.time()
		case "end":
			t.end = r.time()
		case "limit":
			t.limit = r.quantity()
		default:
			r.skip()
		}
	}
	return t
}

func (r *reader) accountingState() (state []string, reason string) {
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "current":
			state = r.list()
		case "reason":
			reason = r.shared()
		default:
			r.skip()
		}
	}
	return state, reason
}

func (r *reader) accountingArray() (job int64, task string) {
	var number quantity
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "job_id":
			job = r.quantity().number
		case "task_id":
			number = r.quantity()
		case "task":
			task = r.text("")
		default:
			r.skip()
		}
	}
	if number.set {
		task = strconv.FormatInt(number.number, 10)
	}
	return job, task
}

// accountingTRES are trackable resources in the form of slurmctld, "cpu=4,mem=4000M", and how many CPUs are among those that a job has.
type accountingTRES struct {
	allocated, requested string
	cpus                 int64
}

func (r *reader) accountingTRES() (t accountingTRES) {
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch string(r.key()) {
		case "allocated":
			t.allocated, t.cpus = r.resources()
		case "requested":
			t.requested, _ = r.resources()
		default:
			r.skip()
		}
	}
	return t
}

// resources reads a list of {type, name, count}. Memory is in MiB there, as it is in slurmdbd.
func (r *reader) resources() (text string, cpus int64) {
	var b strings.Builder
	for ok := r.open('['); ok; ok = r.more('[') {
		var kind, name string
		var count int64
		for ok := r.open('{'); ok; ok = r.more('{') {
			switch string(r.key()) {
			case "type":
				kind = r.shared()
			case "name":
				name = r.shared()
			case "count":
				count = r.quantity().number
			default:
				r.skip()
			}
		}
		if count < 0 {
			continue // slurmdbd's value for "not known"
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(kind)
		if name != "" {
			b.WriteString("/" + name)
		}
		b.WriteString("=" + strconv.FormatInt(count, 10))
		switch kind {
		case "mem":
			b.WriteByte('M')
		case "cpu":
			cpus = count
		}
	}
	return r.share([]byte(b.String())), cpus
}

// member reads one member of an object, and skips the others.
func (r *reader) member(name string, read func()) {
	for ok := r.open('{'); ok; ok = r.more('{') {
		if string(r.key()) == name {
			read()
		} else {
			r.skip()
		}
	}
}
