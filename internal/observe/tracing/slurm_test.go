// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// traced runs a link to a Slurm of two nodes with traces, or without, until the test ends.
func traced(t *testing.T, traces slurmcache.Trace) (*slurmcache.Cache, *fake.Slurm) {
	t.Helper()
	key := []byte("the-key-of-the-cluster-of-32-bytes")
	slurm := fake.New(fake.Options{Key: key})
	slurm.Register(fake.Node{Name: "cpu-0"}, fake.Node{Name: "cpu-1"})
	issuer, err := token.NewSigned(key, "slurm", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	l, err := slurmcache.New(slurmcache.Key{Namespace: "slurm", Name: "demo"}, slurmcache.Config{Endpoint: "http://slurm:6820", Issuer: issuer},
		slurmcache.Options{Transport: slurm.Transport(), Interval: 10 * time.Millisecond, Window: 300 * time.Millisecond, Trace: traces})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return l, slurm
}

func named(spans tracetest.SpanStubs, name string) (out []tracetest.SpanStub) {
	for _, s := range spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// A write that a link makes for two passes is in the trace of one of them, with a link to the other. The link's own polls make no spans.
func TestAWriteForTwoPassesIsInOneTraceWithALinkToTheOther(t *testing.T) {
	traces, spans, _ := recorded(t)
	l, slurm := traced(t, traces)
	var callers []trace.SpanContext
	answers := make(chan error, 2)
	for _, name := range []string{"cpu-0", "cpu-1"} {
		ctx, span := traces.tracer.Start(t.Context(), "pass of "+name)
		callers = append(callers, span.SpanContext())
		l.DrainLater(ctx, name, "slurm-operator: test", func(err error) { answers <- err })
		span.End()
	}
	for range callers {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	l.Relist()
	writes := named(spans.GetSpans(), "write to Slurm")
	deadline, tick := time.After(2*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for len(writes) == 0 { // the span ends right after the callers are told
		select {
		case <-deadline:
			t.Fatal("the write has no span")
		case <-tick.C:
			writes = named(spans.GetSpans(), "write to Slurm")
		}
	}
	if len(writes) != 1 || writes[0].Parent.SpanID() != callers[0].SpanID() || len(writes[0].Links) != 1 || writes[0].Links[0].SpanContext.SpanID() != callers[1].SpanID() {
		t.Fatalf("the writes are %+v, and the callers %+v", writes, callers)
	}
	requests := named(spans.GetSpans(), "POST /slurm/v0.0.45/nodes/")
	if len(requests) != 1 || requests[0].Parent.SpanID() != writes[0].SpanContext.SpanID() {
		t.Fatalf("the requests are %+v", requests)
	}
	attributes := map[string]string{}
	for _, a := range requests[0].Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	if attributes["http.response.status_code"] != "200" || attributes["slurm.cluster"] != "slurm/demo" || attributes["http.request.body.size"] == "0" || attributes["http.response.body.size"] == "0" {
		t.Errorf("its attributes are %v", attributes)
	}
	if polls := slurm.Counters().Calls["GET nodes"]; polls == 0 {
		t.Error("the link does not poll")
	}
	for _, s := range spans.GetSpans() {
		if !slices.ContainsFunc(callers, func(c trace.SpanContext) bool { return c.TraceID() == s.SpanContext.TraceID() }) {
			t.Errorf("%s belongs to no caller", s.Name)
		}
	}
}

func TestALinkWithoutTracesHasItsOwnTransport(t *testing.T) {
	l, slurm := traced(t, nil)
	traces, spans, _ := recorded(t)
	ctx, span := traces.tracer.Start(t.Context(), "pass")
	if err := l.Drain(ctx, []string{"cpu-0"}, "slurm-operator: test").Err(); err != nil {
		t.Fatal(err)
	}
	span.End()
	if all := spans.GetSpans(); len(all) != 1 || slurm.Counters().Calls["POST nodes"] != 1 {
		t.Errorf("there are spans without Options.Trace: %s", tree(all))
	}
}

func TestARequestThatFailsSaysSo(t *testing.T) {
	traces, spans, _ := recorded(t)
	ctx, span := traces.tracer.Start(t.Context(), "pass")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/slurm/v0.0.45/diag/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := traces.Slurm("slurm/demo", &http.Transport{}).RoundTrip(request); err == nil {
		_ = answer.Body.Close()
		t.Fatal("somebody answers")
	}
	span.End()
	if got := named(spans.GetSpans(), "GET /slurm/v0.0.45/diag/"); len(got) != 1 || got[0].Status.Description == "" {
		t.Errorf("the spans are %s", tree(spans.GetSpans()))
	}
}
