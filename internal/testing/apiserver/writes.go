// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Write is one changing request, whether the server accepted it or not.
type Write struct {
	// Method is POST, PUT, PATCH or DELETE.
	Method string
	// Path is the URL's path: /api/v1/namespaces/test-abc/configmaps/name/status.
	Path string
	// Code is the HTTP status of the answer, 0 when there was none.
	Code int
}

// String returns the write on one line.
func (w Write) String() string { return fmt.Sprintf("%s %s (%d)", w.Method, w.Path, w.Code) }

// Writes counts changing requests. Leases and Events are kept apart from the rest, since neither changes what the
// operator manages; review requests, which only ask, are not counted.
type Writes struct {
	mu   sync.Mutex
	seen []Write
	// resets is how often Reset was called.
	resets int
}

// All returns the writes since the last Reset, without Leases and Events.
func (w *Writes) All() []Write {
	return w.filter(func(x Write) bool {
		return !strings.Contains(x.Path, "/leases") && !strings.Contains(x.Path, "/events")
	})
}

// Of returns the writes to one resource, such as "configmaps", "events" or "statefulsets", since the last Reset.
func (w *Writes) Of(resource string) []Write {
	return w.filter(func(x Write) bool { return slices.Contains(strings.Split(x.Path, "/"), resource) })
}

// Reset forgets what was counted. A write that is under way counts as before it: its effect may have been seen already.
func (w *Writes) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = nil
	w.resets++
}

// ExpectNone fails the test when anything was written since the last Reset, and lists it.
func (w *Writes) ExpectNone(t testing.TB) {
	t.Helper()
	if all := w.All(); len(all) > 0 {
		lines := make([]string, 0, len(all))
		for _, x := range all {
			lines = append(lines, x.String())
		}
		t.Errorf("expected no writes, saw %d:\n  %s", len(all), strings.Join(lines, "\n  "))
	}
}

func (w *Writes) filter(keep func(Write) bool) []Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.seen), func(x Write) bool { return !keep(x) })
}

// wrap returns a transport that counts.
func (w *Writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		begun := w.resets
		w.mu.Unlock()
		response, err := next.RoundTrip(r)
		if changes(r) {
			write := Write{Method: r.Method, Path: r.URL.Path}
			if response != nil {
				write.Code = response.StatusCode
			}
			w.mu.Lock()
			if w.resets == begun {
				w.seen = append(w.seen, write)
			}
			w.mu.Unlock()
		}
		return response, err
	})
}

func changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !strings.Contains(r.URL.Path, "/authentication.k8s.io/") && !strings.Contains(r.URL.Path, "/authorization.k8s.io/")
	}
	return false
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
