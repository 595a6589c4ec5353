// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Meta is what every answer of slurmrestd has about slurmrestd itself.
type Meta struct {
	// Cluster is slurm.conf's ClusterName as slurmrestd has it.
	Cluster string
	// Release is slurmrestd's release, for example "26.05.5".
	Release string
}

// An answer is what all answers of slurmrestd have in common.
type answer struct {
	meta       Meta
	errors     []slurmError
	lastUpdate time.Time
}

// decode reads an answer from the stream. Members that all answers share are read here, others by member, which reports whether it took
// the value; what it does not take is skipped.
func (a *answer) decode(r *reader, member func(key string) bool) error {
	if r.peek() == 'n' {
		r.fail("expected '{', found null")
	}
	for ok := r.open('{'); ok; ok = r.more('{') {
		switch key := r.key(); string(key) {
		case "meta":
			a.meta = r.meta()
		case "errors":
			a.errors = r.errors()
		case "last_update":
			a.lastUpdate = r.time()
		default:
			if member == nil || !member(r.share(key)) {
				r.skip()
			}
		}
	}
	r.finish()
	return r.err
}

func (r *reader) meta() Meta {
	var m Meta
	for ok := r.open('{'); ok; ok = r.more('{') {
		// "slurm" from v0.0.41 on, "Slurm" before.
		if key := r.key(); string(key) != "slurm" && string(key) != "Slurm" {
			r.skip()
			continue
		}
		for ok := r.open('{'); ok; ok = r.more('{') {
			switch string(r.key()) {
			case "release":
				m.Release = string(r.bytes())
			case "cluster":
				m.Cluster = string(r.bytes())
			default:
				r.skip()
			}
		}
	}
	return m
}

// maxErrors bounds how many entries of errors[] are kept.
const maxErrors = 16

func (r *reader) errors() []slurmError {
	var list []slurmError
	for ok := r.open('['); ok; ok = r.more('[') {
		var e slurmError
		for ok := r.open('{'); ok; ok = r.more('{') {
			switch string(r.key()) {
			case "error_number":
				e.number = int(r.integer())
			case "description":
				e.description = string(r.bytes())
			case "error":
				e.text = string(r.bytes())
			default:
				r.skip()
			}
		}
		if len(list) < maxErrors {
			list = append(list, e)
		}
	}
	return list
}

// list asks for a list, or for what changed since an earlier answer when since is not zero.
//
// 24.11 cannot answer the latter when nodes changed but partitions did not (500, "Unable to query partitions"). In v0.0.41 it
// cannot at all (500, it cannot parse the time). So a refusal is followed by asking for the whole.
func (c *Client) list(ctx context.Context, path string, since time.Time, longest int64, decode func(r *reader, conditional bool) ([]slurmError, error)) (unchanged bool, err error) {
	ask := func(query url.Values) (bool, error) {
		return c.do(ctx, call{
			method: http.MethodGet, path: path, query: query, longest: longest, repeatable: true,
			decode: func(r *reader) ([]slurmError, error) { return decode(r, query != nil) },
		})
	}
	if since.IsZero() {
		return ask(nil)
	}
	unchanged, err = ask(url.Values{"update_time": {strconv.FormatInt(since.Unix(), 10)}})
	if errors.Is(err, Refused) {
		return ask(nil)
	}
	return unchanged, err
}
