// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serve returns an anonymous client of a server with the given handler.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := NewAnonymous(server.URL, ca)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestApplySendsEachDocument(t *testing.T) {
	var got []string
	client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("fieldManager")+" "+r.Header.Get("Content-Type")+" "+string(b[len(b)-1:]))
	})
	err := client.Apply(t.Context(), []byte("# Copyright\n\n# /api/v1/a\na: 1\n---\n# /api/v1/b\nb: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"PATCH /api/v1/a localkube application/apply-patch+yaml 1",
		"PATCH /api/v1/b localkube application/apply-patch+yaml \n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := client.Apply(t.Context(), []byte("a: 1\n")); err == nil {
		t.Error("a document without a path was applied")
	}
}

func TestNode(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/nodes/ready":
			_, _ = io.WriteString(w, `{"status":{"conditions":[{"type":"DiskPressure","status":"True"},
				{"type":"Ready","status":"True","message":"fine","lastHeartbeatTime":"2026-11-20T11:20:00Z"}]}}`)
		case "/api/v1/nodes/new":
			_, _ = io.WriteString(w, `{"status":{}}`)
		default:
			http.Error(w, "no such node", http.StatusNotFound)
		}
	})
	n, err := client.Node(t.Context(), "ready")
	if err != nil || !n.Ready || n.Message != "fine" || n.Heartbeat.Minute() != 20 {
		t.Errorf("ready: %+v, %v", n, err)
	}
	n, err = client.Node(t.Context(), "new")
	if err != nil || n.Ready || !strings.Contains(n.Message, "not reported") {
		t.Errorf("new: %+v, %v", n, err)
	}
	_, err = client.Node(t.Context(), "missing")
	status := (*StatusError)(nil)
	if !errors.As(err, &status) || status.Code != http.StatusNotFound || status.Body != "no such node" {
		t.Errorf("missing: %v", err)
	}
}

func FuzzDocumentPath(f *testing.F) {
	f.Add("# Copyright\n\n# /api/v1/a\na: 1\n")
	f.Add("#\n# /")
	f.Fuzz(func(t *testing.T, document string) {
		if path, err := documentPath(document); err == nil && (!strings.HasPrefix(path, "/") || strings.Contains(path, "\n")) {
			t.Errorf("path %q of %q", path, document)
		}
	})
}
