// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"testing"
)

func TestAWriteUnderWayCountsAsBeforeTheReset(t *testing.T) {
	var w Writes
	during := func() {}
	transport := w.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		during()
		return &http.Response{StatusCode: http.StatusOK}, nil
	}))
	write := func() {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://server/api/v1/namespaces/a/configmaps/b", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transport.RoundTrip(r); err != nil { //nolint:bodyclose // it has none
			t.Fatal(err)
		}
	}
	write()
	if got := len(w.All()); got != 1 {
		t.Errorf("%d writes were counted, want 1", got)
	}
	during = w.Reset
	write()
	if got := w.All(); len(got) > 0 {
		t.Errorf("counted was what had begun before the reset: %v", got)
	}
}
