// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/trace"
)

// Trace makes spans of what a link sends to Slurm.
type Trace interface {
	// Slurm wraps a transport so that each request of a traced caller to a cluster's slurmrestd has a span.
	Slurm(cluster string, next http.RoundTripper) http.RoundTripper
	// Write begins the span of a write that a link makes for several callers, some of which may be traced. The caller ends it.
	Write(ctx context.Context, cluster string, callers []trace.SpanContext) (with context.Context, end func())
}

// wrap returns how the transport of a link is wrapped; nil leaves it as it is.
func (o Options) wrap(key Key) func(http.RoundTripper) http.RoundTripper {
	if o.Trace == nil {
		return nil
	}
	return func(next http.RoundTripper) http.RoundTripper { return o.Trace.Slurm(key.String(), next) }
}

// tracing begins the span of a write.
type tracing func(ctx context.Context, callers []trace.SpanContext) (context.Context, func())

// trace lets writes have spans. Without it callers are not recorded.
func (w *writer) trace(traced tracing) { w.states.traced, w.attributes.traced = traced, traced }

// callers are the spans of the callers of the write, each once.
func (g *group) callers() []trace.SpanContext {
	var out []trace.SpanContext
	seen := map[trace.SpanID]bool{}
	for _, r := range g.requests {
		if id := r.caller.SpanID(); r.caller.IsValid() && !seen[id] {
			seen[id] = true
			out = append(out, r.caller)
		}
	}
	return out
}
