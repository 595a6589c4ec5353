// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrape is what Prometheus gets, without comments.
func scrape(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).
		ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(answer.Body.String()), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
}

func TestMetricsOfALinkAreScrapedWhileThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlurm(3)
		r := NewRegistry(Options{Transport: s.Transport()})
		registry := prometheus.NewPedanticRegistry()
		if err := registry.Register(r); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		synctest.Wait()
		l, err := r.Set(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)})
		if err != nil {
			t.Fatal(err)
		}
		after(time.Minute)
		if failures := l.Drain(t.Context(), []string{"worker-0", "worker-1"}, "slurm-operator: for a test"); len(failures) > 0 {
			t.Fatal(failures)
		}
		l.Spend(time.Now(), 1)
		after(time.Second)

		lines := scrape(t, registry)
		const of = `{(.*,)?controller="main",(.*,)?namespace="slurm"(,.*)?} `
		for _, want := range []string{
			`coxswain_slurm_calls_total{call="GET nodes",controller="main",namespace="slurm",result="ok"} [1-9][0-9]*`,
			`coxswain_slurm_calls_total{call="POST nodes",controller="main",namespace="slurm",result="ok"} 1`,
			`coxswain_slurm_call_duration_seconds_count` + of + `[1-9].*`, `coxswain_slurm_received_bytes_total` + of + `[1-9].*`,
			`coxswain_slurm_sent_bytes_total` + of + `[1-9].*`, `coxswain_slurm_write_requests_total` + of + `1`, `coxswain_slurm_write_nodes_sum` + of + `2`,
			`coxswain_slurm_trust{controller="main",namespace="slurm",trust="Fresh"} 1`, `coxswain_slurm_trust{controller="main",namespace="slurm",trust="Stale"} 0`,
			`coxswain_slurm_nodes` + of + `3`, `coxswain_slurm_age_seconds` + of + `[0-9.e+-]+`,
			`coxswain_slurm_destructive_actions` + of + `1`, `coxswain_slurm_destructive_actions_limit` + of + `20`, `coxswain_slurm_destructive_actions_paused` + of + `0`,
		} {
			if pattern := regexp.MustCompile("^" + want + "$"); !slices.ContainsFunc(lines, pattern.MatchString) {
				t.Errorf("there is no line %s", want)
			}
		}
		if t.Failed() {
			t.Logf("there is\n%s", strings.Join(lines, "\n"))
		}

		r.Delete(key)
		if lines := scrape(t, registry); len(lines) > 0 && lines[0] != "" {
			t.Errorf("after the link's end there is still\n%s", strings.Join(lines, "\n"))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
