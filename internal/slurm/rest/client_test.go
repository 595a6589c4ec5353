// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "header.claims.signature"

// fixed is an issuer of one token that never ends.
type fixed string

func (f fixed) Token(time.Time) (string, time.Time, error) { return string(f), time.Time{}, nil }

// broken is an issuer that has none.
type broken struct{}

func (broken) Token(time.Time) (string, time.Time, error) {
	return "", time.Time{}, errors.New("no key")
}

// serve returns a client of a server that answers every request with handler.
func serve(t *testing.T, options Options, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	client, err := NewClient(server.URL, fixed(secret), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client
}

func recorded(t testing.TB, file string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

const pingAnswer = `{"pings":[{"hostname":"ctl","responding":true,"primary":true,"status":"No error"}],"errors":[]}`

// answering answers pings well and everything else with status and body.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/ping/") {
			_, _ = io.WriteString(w, pingAnswer)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func withError(number int, text string) string {
	return fmt.Sprintf(`{"errors":[{"description":"Failure to do it","error_number":%d,"error":%q,"source":"x"}],"warnings":[]}`, number, text)
}

func TestRequestsAreWhatSlurmExpects(t *testing.T) {
	var got []string
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Content-Type"), body))
		if r.Header.Get("X-SLURM-USER-TOKEN") != secret {
			t.Errorf("token is %q", r.Header.Get("X-SLURM-USER-TOKEN"))
		}
		switch {
		case strings.Contains(r.URL.Path, "v0.0.45"):
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, "/ping/"):
			_, _ = io.WriteString(w, pingAnswer)
		case r.URL.Query().Has("update_time"):
			w.WriteHeader(http.StatusNotModified)
		default:
			_, _ = io.WriteString(w, `{"errors":[]}`)
		}
	})
	empty := ""
	_, err := client.Nodes(t.Context(), time.Unix(1795172262, 500))
	err = errors.Join(err,
		client.UpdateNodes(t.Context(), "worker-[0-9]", NodeUpdate{State: "DRAIN", Reason: `coxswain: "x" <y>`}),
		client.UpdateNodes(t.Context(), "a", NodeUpdate{State: "UNDRAIN"}),
		client.UpdateNodes(t.Context(), "a", NodeUpdate{Comment: &empty}),
		client.DeleteNodes(t.Context(), "worker-0"),
		client.Reconfigure(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`GET /slurm/v0.0.45/ping/  `,
		`GET /slurm/v0.0.44/ping/  `,
		`GET /slurm/v0.0.44/nodes/?update_time=1795172262  `,
		`POST /slurm/v0.0.44/nodes/ application/json {"name":["worker-[0-9]"],"state":["DRAIN"],"reason":"coxswain: \"x\" <y>"}` + "\n",
		`POST /slurm/v0.0.44/nodes/ application/json {"name":["a"],"state":["UNDRAIN"]}` + "\n",
		`POST /slurm/v0.0.44/nodes/ application/json {"name":["a"],"comment":""}` + "\n",
		`DELETE /slurm/v0.0.44/node/worker-0  `,
		`GET /slurm/v0.0.44/reconfigure/  `,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestWritesAreCheckedBeforeTheyLeave(t *testing.T) {
	client := serve(t, Options{}, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	for name, err := range map[string]error{
		"no nodes":         client.UpdateNodes(t.Context(), "", NodeUpdate{State: "DRAIN"}),
		"no change":        client.UpdateNodes(t.Context(), "a", NodeUpdate{}),
		"deleting nothing": client.DeleteNodes(t.Context(), ""),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestErrorsSayWhatHappenedAndNoSecret(t *testing.T) {
	body := `{"errors":[{"description":"Failure to do it","error_number":2018,"error":"Invalid node name specified\n\u001b[31m` +
		secret + strings.Repeat("é", 400) + `"}]}`
	client := serve(t, Options{}, answering(422, body))
	err := client.UpdateNodes(t.Context(), strings.Repeat("n", 1000), NodeUpdate{State: "DRAIN"})
	text := err.Error()
	for _, want := range []string{"updating Slurm nodes nnn", "absent: Failure to do it: Invalid node name specified", "(Slurm code 2018, HTTP 422)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, secret) || strings.ContainsAny(text, "\n\x1b") || len(text) > 800 {
		t.Errorf("error of %d bytes is %q", len(text), text)
	}
	withoutToken, err := NewClient("http://127.0.0.1:1", broken{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := withoutToken.Nodes(t.Context(), time.Time{}); !errors.Is(err, Unauthorized) || !strings.Contains(err.Error(), "no key") {
		t.Errorf("error is %v", err)
	}
}

func TestTokenDoesNotFollowARedirect(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the token went to %s", r.Host)
	}))
	defer thief.Close()
	client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) })
	if _, err := client.Nodes(t.Context(), time.Time{}); !errors.Is(err, Malformed) {
		t.Errorf("error is %v", err)
	}
}

func TestNewClientRefusesEndpoints(t *testing.T) {
	for _, endpoint := range []string{"", "slurm:6820", "ftp://slurm", "http://", "http://user:password@slurm", "http://slurm?x=1", "http://slurm#x", "http://%zz"} {
		_, err := NewClient(endpoint, fixed(secret), Options{})
		if err == nil || strings.Contains(err.Error(), "password") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if _, err := NewClient("http://slurm", nil, Options{}); err == nil {
		t.Error("a client without issuer is made")
	}
}
