// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestSlurmctldStopsAndStarts(t *testing.T) {
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		t.Run(release, func(t *testing.T) {
			c := start(t, release)
			c.Register(fake.Node{Name: "a"})
			job := c.Submit(fake.Job{Nodes: 1, Duration: time.Minute})
			c.Stop()
			c.clock.Step(30 * time.Second)
			pings, err := c.client.Ping(t.Context())
			if err != nil || len(pings) != 1 || pings[0].Responding {
				t.Errorf("ping while down: %+v, %v", pings, err)
			}
			var e *rest.Error
			if _, err := c.client.Nodes(t.Context(), time.Time{}); !errors.As(err, &e) || e.Kind != rest.Unavailable || e.Code != 1800 {
				t.Errorf("nodes while down: %v", err)
			}
			if err := c.client.UpdateNodes(t.Context(), "a", rest.NodeUpdate{State: "DRAIN"}); !errors.Is(err, rest.Unavailable) {
				t.Errorf("update while down: %v", err)
			}
			c.Start(true)
			if got := c.states(t); got != "a=ALLOCATED" {
				t.Errorf("with its state: %s", got)
			}
			if status, _ := c.Job(job); status.State[0] != "RUNNING" {
				t.Errorf("job with state: %+v", status)
			}
			c.Stop()
			c.Start(false)
			if got := c.states(t); got != "" {
				t.Errorf("without its state: %s", got)
			}
			c.Register(fake.Node{Name: "a"})
			if got := c.states(t); got != "a=IDLE" {
				t.Errorf("registered again: %s", got)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	drain := rest.NodeUpdate{State: "DRAIN", Reason: "r"}
	tests := map[string]struct {
		fault fake.Fault
		read  error
		count int
		write error
		after string
	}{
		"none":                        {fake.Fault{}, nil, 2, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"500 without words":           {fake.Fault{Status: 500, Body: "oops"}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE b=IDLE"},
		"500 after it was applied":    {fake.Fault{Status: 500, Apply: true}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"a reply that is lost":        {fake.Fault{Cut: true, Apply: true}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"a request that is lost":      {fake.Fault{Cut: true}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE b=IDLE"},
		"an error with 200":           {fake.Fault{Error: &fake.Error{Number: 9, Text: "x"}}, rest.Refused, 0, rest.Refused, "a=IDLE b=IDLE"},
		"an empty list with 200":      {fake.Fault{KeepNode: func(string) bool { return false }}, nil, 0, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"a partial list with 200":     {fake.Fault{KeepNode: func(n string) bool { return n == "b" }}, nil, 1, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"latency beyond the time-out": {fake.Fault{Latency: time.Hour}, context.DeadlineExceeded, 0, context.DeadlineExceeded, "a=IDLE b=IDLE"},
		"silence":                     {fake.Fault{Hold: make(chan struct{})}, context.DeadlineExceeded, 0, context.DeadlineExceeded, "a=IDLE b=IDLE"},
		"some latency":                {fake.Fault{Latency: time.Millisecond}, nil, 2, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t, fake.Slurm2605)
			c.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"})
			if _, err := c.client.Version(t.Context()); err != nil {
				t.Fatal(err)
			}
			patience := time.Minute
			if errors.Is(test.read, context.DeadlineExceeded) {
				patience = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.SetFault(func(*http.Request) *fake.Fault { return &test.fault })
			list, err := c.client.Nodes(ctx, time.Time{})
			if !errors.Is(err, test.read) || len(list.Nodes) != test.count {
				t.Errorf("reading: %d nodes, %v; want %d, %v", len(list.Nodes), err, test.count, test.read)
			}
			if err := c.client.UpdateNodes(ctx, "a", drain); !errors.Is(err, test.write) {
				t.Errorf("writing: %v, want %v", err, test.write)
			}
			c.SetFault(nil)
			if got := c.states(t); got != test.after {
				t.Errorf("afterwards %s, want %s", got, test.after)
			}
		})
	}
}
