// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

// environment is one in which a variable may be set.
func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestCommandLinesOfThePredecessorAreTaken(t *testing.T) {
	named := environment(map[string]string{"REBOOTER_NODE_NAME": "node-1", "REBOOTER_EVICTION_METHOD": "evict"})
	o, err := parse(strings.Fields("-log-level=debug -log-format=json --reconcile-timeout=1m --metrics-secure=false --enable-http2 --cache-sync-timeout=3m"), t.Output(), named)
	if err != nil {
		t.Fatal(err)
	}
	if o.node != "node-1" || o.logLevel != "debug" || o.metrics.Secure || !o.enableHTTP2 || o.cacheSyncTimeout != 3*time.Minute {
		t.Errorf("%+v", o)
	}
	o, err = parse(nil, t.Output(), named)
	if err != nil || o.healthAddr != ":8081" || o.metrics.Address != ":8080" || !o.metrics.Secure || o.cacheSyncTimeout != 2*time.Minute || o.logLevel != "info" {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for _, tt := range []struct {
		name, args  string
		environment map[string]string
		want        string
	}{
		{"without a node", "", nil, "REBOOTER_NODE_NAME is empty"},
		{"another way to drain", "", map[string]string{"REBOOTER_NODE_NAME": "n", "REBOOTER_EVICTION_METHOD": "drain"}, "not supported"},
		{"an unknown level", "--log-level=loud", map[string]string{"REBOOTER_NODE_NAME": "n"}, "loud"},
		{"an argument", "now", map[string]string{"REBOOTER_NODE_NAME": "n"}, `unexpected argument "now"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parse(strings.Fields(tt.args), t.Output(), environment(tt.environment)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := parse([]string{"--help"}, t.Output(), environment(nil)); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}
