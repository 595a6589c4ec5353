// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing follows a change by a user to its effect in Slurm, by traces of OpenTelemetry.
//
// A trace is a change: one generation of an object of ours. Its spans are the passes of the reconcilers that follow from it, and below
// each pass the writes to the API server and the requests to slurmrestd. Its identifier is computed from the UID and the generation
// (docs/decisions/036-a-trace-is-a-generation.md), so that nothing has to be written into objects.
//
// A nil *Tracing traces nothing: whatever would be wrapped stays as it is.
package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// scope is the name that spans have as their origin.
const scope = "github.com/coxswain-hpc/coxswain/internal/observe/tracing"

// Tracing makes spans. It is safe for concurrent use.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	changes  *changes
	// kinds are those whose objects may be looked up as owners: the manager's cache has them, because they are reconciled.
	kinds map[schema.GroupKind]bool
}

// New returns a Tracing that hands spans to a processor. The sampler is that of the environment (OTEL_TRACES_SAMPLER), and all traces
// without one.
func New(processor sdktrace.SpanProcessor, about *resource.Resource, clock clock.PassiveClock) *Tracing {
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(processor), sdktrace.WithResource(about), sdktrace.WithIDGenerator(generator{}),
	)
	t := &Tracing{provider: provider, tracer: provider.Tracer(scope), kinds: map[schema.GroupKind]bool{}}
	t.changes = newChanges(t.tracer, clock)
	return t
}

// closeTimeout bounds how long the last spans may take to be sent.
const closeTimeout = 5 * time.Second

// Close sends the spans that have not been sent. Spans that end later are lost.
func (t *Tracing) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last spans: %w", err)
	}
	return nil
}
