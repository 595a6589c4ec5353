// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/utils/clock"
)

// Options are where spans are sent. Everything else is read from the environment, as OpenTelemetry's specification has it:
// OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_TRACES_SAMPLER, OTEL_BSP_MAX_QUEUE_SIZE, OTEL_RESOURCE_ATTRIBUTES and others.
type Options struct {
	// Endpoint is the URL of a receiver of OTLP over HTTP, such as "http://collector:4318"; empty is that of the environment.
	Endpoint string
	// Service and Version are the service and version of the program that sends them.
	Service, Version string
	Log              logr.Logger
}

// ParseEndpoint checks the URL of a receiver. Errors do not repeat it: it may hold a password.
func ParseEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("it is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("it is not like http://host:4318")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("it has more than scheme, host, port and path: secrets belong into OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

// Export returns a Tracing that sends spans to a receiver, in batches. Nothing waits for the receiver: when it does not answer, spans
// are dropped once 2048 of them wait.
func Export(ctx context.Context, o Options) (*Tracing, error) {
	var to []otlptracehttp.Option
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil {
			return nil, errors.New("exporting traces: the endpoint is no URL")
		}
		to = append(to, otlptracehttp.WithEndpointURL(u.JoinPath("v1", "traces").String()))
	}
	exporter, err := otlptracehttp.New(ctx, to...)
	if err != nil {
		return nil, fmt.Errorf("exporting traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)),
		resource.WithFromEnv(), // what users say of the process counts more
	)
	if err != nil {
		return nil, fmt.Errorf("describing the process for traces: %w", err)
	}
	return New(sdktrace.NewBatchSpanProcessor(&telling{SpanExporter: exporter, log: o.Log}), about, clock.RealClock{}), nil
}

// telling writes to the log when spans cannot be sent, and when they can again.
type telling struct {
	sdktrace.SpanExporter
	log logr.Logger

	mu      sync.Mutex
	failing bool
}

// ExportSpans is part of sdktrace.SpanExporter. It returns no error: OpenTelemetry would print every one.
func (t *telling) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && !t.failing:
		t.log.Error(err, "Could not send traces, and dropped them; this is said once", "spans", len(spans))
	case err == nil && t.failing:
		t.log.Info("Sent traces again")
	}
	t.failing = err != nil
	return nil
}
