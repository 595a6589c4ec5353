// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Slurm makes a transport that makes a span of each request to the slurmrestd of a cluster that a pass has made, or a write that passes
// have asked for. The link's own polls, which go on for ever, have none.
func (t *Tracing) Slurm(cluster string, next http.RoundTripper) http.RoundTripper {
	return &slurm{tracer: t.tracer, cluster: cluster, next: next}
}

type slurm struct {
	tracer  trace.Tracer
	cluster string
	next    http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (s *slurm) RoundTrip(r *http.Request) (*http.Response, error) {
	if !trace.SpanFromContext(r.Context()).IsRecording() {
		return s.next.RoundTrip(r)
	}
	path := template(r.URL.Path)
	ctx, span := s.tracer.Start(r.Context(), r.Method+" "+path, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		keyCluster.String(s.cluster), keyMethod.String(r.Method), keyTemplate.String(path), keySent.Int64(max(0, r.ContentLength)),
	))
	response, err := s.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		span.End()
		return response, err
	}
	answered(span, response.StatusCode)
	response.Body = &body{ReadCloser: response.Body, span: span}
	return response, nil
}

// template returns a path of slurmrestd without what names one object: "/slurm/v0.0.45/node/{name}".
func template(path string) string {
	const kind = 3 // after "", "slurm" and the version
	parts := strings.Split(path, "/")
	if len(parts) > kind+1 && parts[kind+1] != "" && parts[kind] != "jobs" {
		return strings.Join(parts[:kind+1], "/") + "/{name}"
	}
	return path
}

// body ends the span of a request when its answer has been read, or it is no longer read.
type body struct {
	io.ReadCloser
	span     trace.Span
	received int64
	end      sync.Once
}

// Read is part of io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.span.SetStatus(codes.Error, err.Error())
	}
	return n, err
}

// Close is part of io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end.Do(func() {
		b.span.SetAttributes(keyReceived.Int64(b.received))
		b.span.End()
	})
	return err
}

// Write begins the span of a write that a link makes for one or several passes. It is part of the trace of the first of them, and has
// links to the others. Without a caller that is traced there is no span.
func (t *Tracing) Write(ctx context.Context, cluster string, callers []trace.SpanContext) (with context.Context, end func()) {
	if len(callers) == 0 {
		return ctx, func() {}
	}
	links := make([]trace.Link, 0, len(callers)-1)
	for _, caller := range callers[1:] {
		links = append(links, trace.Link{SpanContext: caller})
	}
	with, span := t.tracer.Start(trace.ContextWithSpanContext(ctx, callers[0]), "write to Slurm",
		trace.WithLinks(links...), trace.WithAttributes(keyCluster.String(cluster)))
	return with, func() { span.End() }
}
