// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// TestSoperatorChecksIsReadyUntilItIsStopped starts the stand-in with the flags of Soperator's chart:
// docs/contributors/predecessors/soperator-installation.md.
func TestSoperatorChecksIsReadyUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- standIn(ctx, []string{"--leader-elect", "--health-probe-bind-address=127.0.0.1:0", "--requeue-after-activecheck=10s", "--controllers=*"}, writer)
	}()
	var line struct{ Msg, Address string }
	if err := json.NewDecoder(reader).Decode(&line); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusNotFound} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+line.Address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != want || answer.Body.Close() != nil {
			t.Errorf("%s answers %s", path, answer.Status)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSoperatorChecksNamesThePortThatItCannotHave(t *testing.T) {
	if err := standIn(t.Context(), []string{"--health-probe-bind-address=nowhere:x"}, &bytes.Buffer{}); err == nil {
		t.Error("no error for a port that is none")
	}
}

func TestTheAddressOfProbesIsTheLastOne(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no flag":                     {nil, ":8081"},
		"one word":                    {[]string{"--leader-elect", "-health-probe-bind-address=:1"}, ":1"},
		"two words":                   {[]string{"--health-probe-bind-address", ":2", "--log-level", "info"}, ":2"},
		"twice":                       {[]string{"--health-probe-bind-address", ":2", "--health-probe-bind-address=:3"}, ":3"},
		"without a value":             {[]string{"--health-probe-bind-address"}, ":8081"},
		"a value of another flag":     {[]string{"health-probe-bind-address=:4"}, ":8081"},
		"a flag with a similar name":  {[]string{"--health-probe-bind-address-2=:4"}, ":8081"},
		"a flag of all dashes before": {[]string{"--", "---"}, ":8081"},
	} {
		if got := probeAddress(test.args); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
