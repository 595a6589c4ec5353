// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/coxswain-hpc/coxswain/internal/problem/rule"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

func TestTheSpanOfAPassHasTheRulesThatDecided(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test").Start(t.Context(), "pass")
	reconcile.TraceRules(ctx, []rule.Fired{{Question: "Does it go?", Line: rule.Line{Name: "it is free", Does: "yes", Why: "no job is lost"}}})
	span.End()
	events := recorder.Ended()[0].Events()
	if len(events) != 1 || events[0].Name != "rule" {
		t.Fatalf("the span has events %+v", events)
	}
	got := map[string]string{}
	for _, a := range events[0].Attributes {
		got[string(a.Key)] = a.Value.AsString()
	}
	want := map[string]string{
		"coxswain.rule.question": "Does it go?", "coxswain.rule.when": "it is free", "coxswain.rule.then": "yes", "coxswain.rule.why": "no job is lost",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	reconcile.TraceRules(t.Context(), []rule.Fired{{}}) // without a span there is nothing to add to
}
