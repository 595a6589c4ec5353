// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// contentType is the content type of Prometheus' text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Metrics serves the metrics of the cluster at /metrics, and at /health whether they are any good. A scrape gets what was collected
// last, and waits for nothing.
func (e *Exporter) Metrics() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", e.serveMetrics)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if err := e.Healthy(); err != nil {
			http.Error(w, strings.ReplaceAll(err.Error(), "\n", "; "), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, "healthy")
	})
	return mux
}

// Monitoring serves the metrics of the exporter itself at /metrics.
func (e *Exporter) Monitoring() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(e.own)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

func (e *Exporter) serveMetrics(w http.ResponseWriter, r *http.Request) {
	compressed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Vary", "Accept-Encoding")
	if compressed {
		w.Header().Set("Content-Encoding", "gzip")
	}
	parts := e.parts()
	for _, part := range parts {
		if compressed {
			_, _ = w.Write(part.compressed())
		} else {
			_, _ = w.Write(part.b)
		}
	}
	e.served(parts)
}

// parts returns what was collected last, as far as it was.
func (e *Exporter) parts() []*text {
	var out []*text
	for _, c := range e.collectors {
		if part, _, _ := c.last(); part != nil {
			out = append(out, part)
		}
	}
	return out
}

// served counts an answer to a scrape.
func (e *Exporter) served(parts []*text) {
	series := 0
	for _, part := range parts {
		series += part.total
	}
	e.own.requests.Add(1)
	e.own.exported.Store(int64(series))
}

// A compression is a text as gzip has it, made when it is asked for first. Members of gzip that follow one another are one file.
type compression struct {
	once sync.Once
	b    []byte
}

func (t *text) compressed() []byte {
	t.gzip.once.Do(func() {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is one that there is
		_, _ = w.Write(t.b)
		_ = w.Close() // a buffer takes everything
		t.gzip.b = out.Bytes()
	})
	return t.gzip.b
}
