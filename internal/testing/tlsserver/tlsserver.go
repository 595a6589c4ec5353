// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tlsserver serves HTTPS to tests of clients that verify a certificate by a file.
package tlsserver

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Serve serves HTTPS on this machine until the test ends. It returns the address, and a file with the authority of the certificate.
func Serve(t testing.TB, handler http.Handler) (host string, port int, caFile string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, text, err := net.SplitHostPort(at.Host)
	if err != nil {
		t.Fatal(err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return host, port, caFile
}
