// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestEachDecisionOfAPassIsTraced: the second one is that after Slurm has confirmed that a worker may go.
func TestEachDecisionOfAPassIsTraced(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "pass")
	s := &scope{}
	s.decide(ctx)
	rules := len(s.action.Rules)
	s.decide(ctx)
	span.End()
	if events := recorder.Ended()[0].Events(); rules == 0 || len(events) != 2*rules {
		t.Errorf("two decisions by %d rules each left %d events", rules, len(events))
	}
}
