// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otlptracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestAReceiverOfOTLPGetsTheSpans(t *testing.T) {
	type request struct {
		path, token string
		body        []byte
	}
	got := make(chan request, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- request{r.URL.Path, r.Header.Get("Authorization"), body}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20it")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=here")
	traces, err := Export(t.Context(), Options{Endpoint: receiver.URL, Service: "coxswain-manager", Version: "1.2", Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	_, span := traces.tracer.Start(t.Context(), "reconcile Controller")
	span.SetAttributes(keyName.String("demo"))
	span.End()
	if err := traces.Close(); err != nil {
		t.Fatal(err)
	}
	first := <-got
	var sent otlptracev1.ExportTraceServiceRequest
	if err := proto.Unmarshal(first.body, &sent); err != nil {
		t.Fatal(err)
	}
	if first.path != "/v1/traces" || first.token != "Bearer it" || len(sent.ResourceSpans) != 1 {
		t.Fatalf("it was sent to %s with %q: %v", first.path, first.token, &sent)
	}
	about := map[string]string{}
	for _, a := range sent.ResourceSpans[0].Resource.Attributes {
		about[a.Key] = a.Value.GetStringValue()
	}
	if about["service.name"] != "coxswain-manager" || about["service.version"] != "1.2" || about["k8s.cluster.name"] != "here" {
		t.Errorf("the process is %v", about)
	}
	if spans := sent.ResourceSpans[0].ScopeSpans[0].Spans; len(spans) != 1 || spans[0].Name != "reconcile Controller" || spans[0].Attributes[0].Value.GetStringValue() != "demo" {
		t.Errorf("the spans are %v", spans)
	}
}

// refusing is a receiver that does not answer, or does.
type refusing struct {
	tracetest.InMemoryExporter
	err error
}

func (r *refusing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return r.err }

func TestAReceiverThatDoesNotAnswerIsToldOnce(t *testing.T) {
	var logs []string
	receiver := &refusing{err: errors.New("no answer")}
	telling := &telling{SpanExporter: receiver, log: funcr.New(func(_, args string) { logs = append(logs, args) }, funcr.Options{})}
	for _, err := range []error{errors.New("no answer"), errors.New("no answer"), nil, nil, errors.New("no answer")} {
		receiver.err = err
		if err := telling.ExportSpans(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	said := func(text string) int {
		return len(slices.DeleteFunc(slices.Clone(logs), func(line string) bool { return !strings.Contains(line, text) }))
	}
	if len(logs) != 3 || said("Could not send traces") != 2 || said("Sent traces again") != 1 {
		t.Errorf("the log is %q", logs)
	}
}

func TestWhichEndpointsAreGood(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://collector:4318": "", "https://collector/otlp": "", "collector:4318": "it is not like http://host:4318", "": "it is not like http://host:4318",
		"http://a:secret@collector": "it has more than scheme", "http://c?token=secret": "it has more than scheme", "http://c:4318:1%zz": "it is no URL",
	} {
		err := ParseEndpoint(endpoint)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret@") || err != nil && strings.Contains(err.Error(), "=secret")) {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
