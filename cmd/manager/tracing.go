// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/go-logr/logr"

	"github.com/coxswain-hpc/coxswain/internal/observe/tracing"
)

// tracingOptions are where traces are sent. Other settings are read from the environment by OpenTelemetry's library.
type tracingOptions struct {
	endpoint string
	// byEnvironment is true if the environment names a receiver, and protocol is what it names as the protocol.
	byEnvironment bool
	protocol      string
}

func (t *tracingOptions) bind(fs *flag.FlagSet, getenv func(string) string) {
	fs.StringVar(&t.endpoint, "otlp-endpoint", "",
		"`URL` of a receiver of OTLP over HTTP, such as http://collector:4318, to which traces are sent; default: none, or that of env OTEL_EXPORTER_OTLP_ENDPOINT")
	for _, kind := range []string{"", "TRACES_"} { // what is said of traces counts more
		t.byEnvironment = t.byEnvironment || getenv("OTEL_EXPORTER_OTLP_"+kind+"ENDPOINT") != ""
		if protocol := getenv("OTEL_EXPORTER_OTLP_" + kind + "PROTOCOL"); protocol != "" {
			t.protocol = protocol
		}
	}
}

// on reports whether there is a receiver.
func (t *tracingOptions) on() bool { return t.endpoint != "" || t.byEnvironment }

func (t *tracingOptions) validate() error {
	if !t.on() {
		return nil
	}
	if t.endpoint != "" {
		if err := tracing.ParseEndpoint(t.endpoint); err != nil {
			return fmt.Errorf("--otlp-endpoint: %w", err)
		}
	}
	if t.protocol != "" && t.protocol != "http/protobuf" {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: only http/protobuf is supported", t.protocol)
	}
	return nil
}

// traces sends traces if that is asked for; otherwise it is nil, and nothing is traced.
func (o *options) traces(ctx context.Context, logger logr.Logger) (*tracing.Tracing, error) {
	if !o.tracing.on() {
		return nil, nil //nolint:nilnil // a nil Tracing traces nothing
	}
	return tracing.Export(ctx, tracing.Options{Endpoint: o.tracing.endpoint, Service: "coxswain-manager", Version: version, Log: logger.WithName("tracing")})
}
