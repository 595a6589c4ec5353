// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// ask asks the server without a listener.
func ask(s *Server, method, path string, header http.Header) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	if header != nil {
		r.Header = header
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	out, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestWhatIsServed(t *testing.T) {
	s, _ := serve(t, newMemory(example(20)), nil)
	for _, tt := range []struct {
		name, method, path string
		status             int
		kind, contains     string
	}{
		{"all clusters", "GET", "/ui", 200, "text/html; charset=utf-8", ">slurm/demo</a>"},
		{"all clusters, with a slash", "GET", "/ui/", 200, "text/html; charset=utf-8", ">slurm/demo</a>"},
		{"a cluster", "GET", "/ui/slurm/demo", 200, "text/html; charset=utf-8", "cpu-14"},
		{"the stylesheet", "GET", "/ui/style.css", 200, "text/css; charset=utf-8", ".s9"},
		{"the script", "GET", "/ui/script.js", 200, "text/javascript; charset=utf-8", "EventSource"},
		{"the head of a page", "HEAD", "/ui/slurm/demo", 200, "text/html; charset=utf-8", ""},
		{"the head of updates, which does not follow them", "HEAD", "/ui/slurm/demo/events", 200, "text/event-stream", ""},
		{"a cluster that is not there", "GET", "/ui/slurm/other", 404, "text/plain; charset=utf-8", "there is no Slurm cluster slurm/other"},
		{"updates of a cluster that is not there", "GET", "/ui/slurm/other/events", 404, "text/plain; charset=utf-8", "there is no Slurm cluster"},
		{"a namespace", "GET", "/ui/slurm", 404, "text/plain; charset=utf-8", "not found"},
		{"a template", "GET", "/ui/cluster.tmpl", 404, "text/plain; charset=utf-8", "not found"},
		{"something below a cluster", "GET", "/ui/slurm/demo/else", 404, "text/plain; charset=utf-8", "not found"},
		{"a write", "POST", "/ui/slurm/demo", 405, "text/plain; charset=utf-8", "read-only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := ask(s, tt.method, tt.path, nil)
			defer func() { _ = r.Body.Close() }()
			if r.StatusCode != tt.status || r.Header.Get("Content-Type") != tt.kind {
				t.Errorf("%d, %s", r.StatusCode, r.Header.Get("Content-Type"))
			}
			if body := text(t, r); !strings.Contains(body, tt.contains) {
				t.Errorf("it lacks %q:\n%s", tt.contains, body)
			}
			for name, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			} {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s is %q", name, got)
				}
			}
		})
	}
}

func TestAPageIsCompressedWhereTheBrowserTakesThat(t *testing.T) {
	s, _ := serve(t, newMemory(example(1000)), nil)
	plain := ask(s, "GET", "/ui/slurm/demo", nil)
	defer func() { _ = plain.Body.Close() }()
	want := text(t, plain)
	compressed := ask(s, "GET", "/ui/slurm/demo", http.Header{"Accept-Encoding": {"gzip, br"}})
	defer func() { _ = compressed.Body.Close() }()
	if plain.Header.Get("Content-Encoding") != "" || compressed.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the encodings are %q and %q", plain.Header.Get("Content-Encoding"), compressed.Header.Get("Content-Encoding"))
	}
	sent := text(t, compressed)
	reader, err := gzip.NewReader(strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != want || len(sent) > len(want)/5 {
		t.Errorf("%d bytes of %d are sent, which are others, or %v", len(sent), len(want), err)
	}
}

func TestWhatWentWrongIsForTheLog(t *testing.T) {
	m := newMemory()
	m.err = errors.New("listing Controllers: a detail")
	s, _ := serve(t, m, nil)
	for _, path := range []string{"/ui", "/ui/slurm/demo", "/ui/slurm/demo/events"} {
		r := ask(s, "GET", path, nil)
		if body := text(t, r); r.StatusCode != http.StatusInternalServerError || strings.Contains(body, "detail") {
			t.Errorf("%s answers %d: %s", path, r.StatusCode, body)
		}
		_ = r.Body.Close()
	}
}
