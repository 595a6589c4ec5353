// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestVersionIsChosenOnceAndAgainAfterAnUpgrade(t *testing.T) {
	served := "v0.0.42"
	var calls []string
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, strings.TrimPrefix(r.URL.Path, "/slurm/v0.0."))
		switch {
		case !strings.Contains(r.URL.Path, served):
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, "/ping/"):
			_, _ = io.WriteString(w, pingAnswer)
		default:
			_, _ = io.WriteString(w, `{"errors":[]}`)
		}
	})
	for _, served = range []string{"v0.0.42", "v0.0.42", "v0.0.44", "v0.0.39"} {
		err := client.UpdateNodes(t.Context(), "a", NodeUpdate{State: "DRAIN"})
		if served == "v0.0.39" {
			if !errors.Is(err, Malformed) || !strings.Contains(err.Error(), "none of the versions") {
				t.Errorf("error is %v", err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, "|")
	}
	want := "45/ping/ 44/ping/ 43/ping/ 42/ping/ 42/nodes/ | 42/nodes/ | 42/nodes/ 45/ping/ 44/ping/ 44/nodes/ | " +
		"44/nodes/ 45/ping/ 44/ping/ 43/ping/ 42/ping/ 41/ping/ |"
	if got := strings.Join(calls, " "); got != want {
		t.Errorf("calls are\n%s, want\n%s", got, want)
	}
}

func TestVersionIsNotGuessedFromAFailure(t *testing.T) {
	status := http.StatusUnauthorized
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "v0.0.45/ping") {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = io.WriteString(w, pingAnswer)
		}
	})
	if _, err := client.Version(t.Context()); !errors.Is(err, Unauthorized) {
		t.Errorf("error is %v", err)
	}
	status = http.StatusServiceUnavailable
	if _, err := client.Version(t.Context()); !errors.Is(err, Unavailable) {
		t.Errorf("error is %v", err)
	}
	status = http.StatusOK
	if version, err := client.Version(t.Context()); version != "v0.0.45" || err != nil {
		t.Errorf("version is %q, %v", version, err)
	}
}
