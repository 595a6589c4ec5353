// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

func TestWhenTracesAreSent(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		on   bool
		err  string
	}{
		{"traces are not sent by default", nil, nil, false, ""},
		{"traces are sent when the flag names a receiver", []string{"--otlp-endpoint=http://collector:4318"}, nil, true, ""},
		{"traces are sent when the environment names a receiver", nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, true, ""},
		{"traces are sent when the environment names a receiver of traces", nil, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, true, ""},
		{"traces are not sent for other settings alone", nil, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_SAMPLER": "always_on"}, false, ""},
		{"traces are sent with the protocol that there is", []string{"--otlp-endpoint=http://c"}, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
		{"traces are not sent by another protocol", []string{"--otlp-endpoint=http://c"}, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "only http/protobuf is supported"},
		{"traces are not sent to something that is no URL", []string{"--otlp-endpoint=collector:4318"}, nil, false, "--otlp-endpoint: it is not like http://host:4318"},
		{"traces are not sent with a password on the command line", []string{"--otlp-endpoint=http://a:b@c"}, nil, false, "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := parse(tt.args, func(name string) string { return tt.env[name] }, &bytes.Buffer{})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			traces, err := o.traces(t.Context(), logr.Discard())
			if err != nil || (traces != nil) != tt.on {
				t.Errorf("there is a tracer: %t, %v", traces != nil, err)
			}
			if err := traces.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
