// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestOnlyUnavailableReadsAreRetried(t *testing.T) {
	tests := map[string]struct {
		status int
		write  bool
		goOn   int // how many retries Retry allows
		calls  int
	}{
		"a read is retried as long as allowed": {503, false, 2, 3},
		"a read is retried a bounded time":     {503, false, 1000, 4},
		"a read is not retried without leave":  {503, false, 0, 1},
		"a refused read is not retried":        {403, false, 1000, 1},
		"an unauthorized read is not retried":  {401, false, 1000, 1},
		"a write is never retried":             {503, true, 1000, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			calls := 0
			client := serve(t, Options{Retry: func(_ context.Context, attempts int) bool { return attempts <= test.goOn }},
				func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, "/ping/") {
						calls++
					}
					answering(test.status, "")(w, r)
				})
			var err error
			if test.write {
				err = client.UpdateNodes(t.Context(), "a", NodeUpdate{State: "DRAIN"})
			} else {
				_, err = client.Nodes(t.Context(), time.Time{})
			}
			if err == nil || calls != test.calls {
				t.Errorf("%d calls, want %d (%v)", calls, test.calls, err)
			}
		})
	}
}

func TestAListIsAskedForAsAWholeWhenOnlyChangesAreRefused(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   error
		calls  string
	}{
		"24.11 fails on partitions":        {500, withError(-1, "Unspecified error"), nil, "since whole"},
		"24.11 in v0.0.41 parses no time":  {500, withError(9202, "Unable to convert Data type"), nil, "since whole"},
		"an unreachable slurmctld is left": {502, withError(1800, "Unable to contact slurm controller"), Unavailable, "since"},
		"a bad token is left":              {511, withError(1007, "Protocol authentication error"), Unauthorized, "since"},
		"nonsense is left":                 {200, `<html>`, Malformed, "since"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var calls []string
			client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/ping/"):
					_, _ = io.WriteString(w, pingAnswer)
				case r.URL.Query().Has("update_time"):
					calls = append(calls, "since")
					w.WriteHeader(test.status)
					_, _ = io.WriteString(w, test.body)
				default:
					calls = append(calls, "whole")
					_, _ = io.WriteString(w, `{"nodes":[{"name":"a"}],"jobs":[{"job_id":1}]}`)
				}
			})
			nodes, err := client.Nodes(t.Context(), time.Unix(1, 0))
			if !errors.Is(err, test.want) || (test.want == nil) != (len(nodes.Nodes) == 1) {
				t.Errorf("nodes are %v, %v", nodes.Nodes, err)
			}
			jobs, err := client.Jobs(t.Context(), time.Unix(1, 0))
			if !errors.Is(err, test.want) || (test.want == nil) != (len(jobs.Jobs) == 1) {
				t.Errorf("jobs are %v, %v", jobs.Jobs, err)
			}
			if got := strings.Join(calls, " "); got != test.calls+" "+test.calls {
				t.Errorf("calls are %s, want %s twice", got, test.calls)
			}
		})
	}
}

func TestContextEndsACall(t *testing.T) {
	arrived := make(chan struct{})
	client := serve(t, Options{Retry: func(context.Context, int) bool { return true }}, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := client.Nodes(ctx, time.Time{}); !errors.Is(err, context.Canceled) || !errors.Is(err, Unavailable) {
		t.Errorf("error is %v", err)
	}
}

func TestAnswersAreBoundedInTimeAndSize(t *testing.T) {
	t.Run("a body that never ends", func(t *testing.T) {
		client := serve(t, Options{MaxBytes: 1 << 20}, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/ping/") {
				_, _ = io.WriteString(w, pingAnswer)
				return
			}
			_, _ = io.WriteString(w, `{"nodes":[`)
			_, _ = io.Copy(w, endless(' '))
		})
		if _, err := client.Nodes(t.Context(), time.Time{}); !errors.Is(err, Malformed) || !errors.Is(err, Bound("1048576 bytes")) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("an answer that never comes", func(t *testing.T) {
		client := serve(t, Options{Timeout: 50 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		if _, err := client.Nodes(t.Context(), time.Time{}); !errors.Is(err, Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("an answer cut off", func(t *testing.T) {
		client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/ping/") {
				_, _ = io.WriteString(w, pingAnswer)
				return
			}
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"nodes":[`)
		})
		if _, err := client.Nodes(t.Context(), time.Time{}); !errors.Is(err, Unavailable) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		client, err := NewClient(server.URL, fixed(secret), Options{})
		if err != nil {
			t.Fatal(err)
		}
		server.Close()
		if _, err := client.Nodes(t.Context(), time.Time{}); !errors.Is(err, Unavailable) {
			t.Errorf("error is %v", err)
		}
	})
}
