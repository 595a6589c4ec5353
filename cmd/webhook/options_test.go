// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestDefaults(t *testing.T) {
	o, err := parse(nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if o.healthAddr != ":8081" || o.metrics.Address != "0" || !o.metrics.Secure || o.enableHTTP2 || o.namespaces != nil {
		t.Errorf("%+v", o)
	}
	if c := o.server.Certificates(); c.Directory != "/tmp/k8s-webhook-server/serving-certs" || c.Secret.Name != "" {
		t.Errorf("%+v", c)
	}
}

func TestTheArgumentsOfBothChartsAreTaken(t *testing.T) {
	var said bytes.Buffer
	o, err := parse([]string{
		"--server-addr=:9443", "--health-addr=:8081", "--metrics-addr=0", "--zap-log-level=info", "--leader-elect", "--leader-elect-namespace=a",
		"--namespaces=a, b", "--cert-secret=ns/ca", "--service=hook", "--validating-configuration=v", "--mutating-configuration=m", "--hosts=a.example,b.example",
	}, &said)
	if err != nil {
		t.Fatal(err)
	}
	c := o.server.Certificates()
	if c.Secret != (types.NamespacedName{Namespace: "ns", Name: "ca"}) || c.Service != "hook" || c.Validating != "v" || c.Mutating != "m" || len(c.Hosts) != 2 {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(o.namespaces, []string{"a", "b"}) || !strings.Contains(said.String(), "--leader-elect has no effect: every replica serves") {
		t.Errorf("%v, %s", o.namespaces, said.String())
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	tests := []struct{ arg, want string }{
		{"--server-addr=9443", `--server-addr is "9443": it must be host:port or :port`},
		{"--server-addr=:0", `--server-addr is ":0": the port must be a number from 1 to 65535`},
		{"--cert-secret=ca", `--cert-secret is "ca": it must be namespace/name`},
		{"--log-level=loud", `--log-level is "loud": use debug, info, warn or error`},
		{"start", `unexpected argument "start": the webhook takes flags only, see --help`},
	}
	for _, tt := range tests {
		t.Run(tt.arg, func(t *testing.T) {
			if _, err := parse([]string{tt.arg}, &bytes.Buffer{}); err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	var said bytes.Buffer
	if err := run([]string{"--help"}, &said); !errors.Is(err, flag.ErrHelp) || !strings.Contains(said.String(), "Usage: webhook [flags]") {
		t.Errorf("%v\n%s", err, said.String())
	}
}
