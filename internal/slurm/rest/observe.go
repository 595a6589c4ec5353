// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"io"
	"strings"
	"time"
)

// Observation is what one attempt of one call cost.
type Observation struct {
	// Call is the method and the kind of object: "GET nodes", "POST nodes", "DELETE node" …
	Call string
	// Result is "ok", "unchanged" or an error's Kind.
	Result string
	// Took is the time from the request to the end of the answer.
	Took time.Duration
	// Worked is how long slurmrestd worked for the answer: until it began to send it, where it had it all by then. How long the
	// answer takes to arrive and to be read depends on who reads it.
	Worked time.Duration
	// Sent and Received are bytes of bodies.
	Sent     int64
	Received int64
}

// String is the call without names of objects.
func (c call) String() string {
	kind, _, _ := strings.Cut(c.path, "/")
	if c.daemon == slurmdbd {
		kind = "accounting " + kind
	}
	return c.method + " " + kind
}

// Results that are no Kind.
const (
	ResultOK        = "ok"
	ResultUnchanged = "unchanged"
)

func resultOf(unchanged bool, err error) string {
	if unchanged {
		return ResultUnchanged
	}
	if err == nil {
		return ResultOK
	}
	if failure, ok := errors.AsType[*Error](err); ok {
		return string(failure.Kind)
	}
	return string(Malformed)
}

// counted counts the bytes that are read.
type counted struct {
	io.ReadCloser
	n *int64
}

// Read is part of io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	*c.n += int64(n)
	return n, err
}
