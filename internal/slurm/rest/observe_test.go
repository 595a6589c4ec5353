// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a body that takes its time to arrive.
type slow struct {
	io.Reader
	took time.Duration
}

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(s.took)
	return s.Reader.Read(p)
}

func (slow) Close() error { return nil }

type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestSlurmrestdDoesNotWorkWhileItsAnswerIsRead(t *testing.T) {
	const body = `{"pings": [], "nodes": [], "last_update": 5}`
	for name, tc := range map[string]struct {
		length int64
		want   time.Duration
	}{
		"an answer whose length is known was ready when it began": {int64(len(body)), 2 * time.Second},
		"an answer of unknown length is made while it is sent":    {-1, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var worked time.Duration
				client, err := NewClient("http://slurm:6820", fixed(secret), Options{
					Observe: func(o Observation) { worked = o.Worked },
					Transport: transport(func(*http.Request) *http.Response {
						time.Sleep(2 * time.Second)
						return &http.Response{StatusCode: http.StatusOK, ContentLength: tc.length, Body: slow{strings.NewReader(body), 1500 * time.Millisecond}}
					}),
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := client.Nodes(t.Context(), time.Time{}); err != nil {
					t.Fatal(err)
				}
				if worked != tc.want {
					t.Errorf("slurmrestd worked for %s, want %s", worked, tc.want)
				}
			})
		})
	}
}
