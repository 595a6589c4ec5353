// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon returns when tests begin.
func noon() time.Time { return time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) }

// recorded returns a Tracing whose spans stay in memory.
func recorded(t *testing.T) (*Tracing, *tracetest.InMemoryExporter, *clocktesting.FakePassiveClock) {
	t.Helper()
	spans, clock := tracetest.NewInMemoryExporter(), clocktesting.NewFakePassiveClock(noon())
	traces := New(sdktrace.NewSimpleSpanProcessor(spans), resource.Empty(), clock)
	return traces, spans, clock
}

// tree shows spans as a tree for each trace, in the order in which they began. Numbers stand for traces.
func tree(spans tracetest.SpanStubs) string {
	var out strings.Builder
	traces := map[trace.TraceID]int{}
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	known := map[trace.SpanID]bool{}
	for _, s := range spans {
		known[s.SpanContext.SpanID()] = true
		if _, ok := traces[s.SpanContext.TraceID()]; !ok {
			traces[s.SpanContext.TraceID()] = len(traces) + 1
		}
	}
	var show func(parent trace.SpanID, depth int)
	one := func(s tracetest.SpanStub, depth int) {
		fmt.Fprintf(&out, "%s%s", strings.Repeat("  ", depth), s.Name)
		for _, a := range s.Attributes {
			fmt.Fprintf(&out, " %s=%s", a.Key, a.Value.String())
		}
		for _, l := range s.Links {
			out.WriteString(" ->")
			for _, a := range l.Attributes {
				fmt.Fprintf(&out, " %s=%s", a.Key, a.Value.String())
			}
		}
		if s.Status.Description != "" {
			fmt.Fprintf(&out, " error=%q", s.Status.Description)
		}
		out.WriteByte('\n')
		show(s.SpanContext.SpanID(), depth+1)
	}
	show = func(parent trace.SpanID, depth int) {
		for _, s := range spans {
			if s.Parent.SpanID() == parent && known[parent] {
				one(s, depth)
			}
		}
	}
	for _, s := range spans {
		if !known[s.Parent.SpanID()] {
			fmt.Fprintf(&out, "trace %d\n", traces[s.SpanContext.TraceID()])
			one(s, 1)
		}
	}
	return out.String()
}
