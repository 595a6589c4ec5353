// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs Debian's Prometheus for tests.
package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Server is a running Prometheus.
type Server struct{ url string }

// startTimeout is how long a Prometheus may take to be ready.
const startTimeout = 20 * time.Second

// Start runs a Prometheus with a configuration (https://prometheus.io/docs/prometheus/latest/configuration/configuration/) until the test
// ends. It listens at the loopback.
func Start(t *testing.T, configuration string) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	address, err := freeAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	command := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn") //nolint:gosec,noctx // it ends in time to say why
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatalf("starting Prometheus: %v; install the Debian package prometheus", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil || t.Failed() {
			t.Logf("Prometheus ended with %v and said:\n%s", err, said.Bytes())
		}
	})
	s := &Server{url: "http://" + address}
	if err := s.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// freeAddress is free a moment later.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a port for Prometheus: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := s.get(ctx, "/-/ready")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for Prometheus: %w", errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}

func (s *Server) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, body)
	}
	return body, err
}

// ask gets the data of an answer of Prometheus' API.
func (s *Server) ask(ctx context.Context, path string, parameters url.Values, data any) error {
	body, err := s.get(ctx, path+"?"+parameters.Encode())
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	if err := json.Unmarshal(body, &struct {
		Data any `json:"data"`
	}{data}); err != nil {
		return fmt.Errorf("reading what Prometheus says: %w in %s", err, body)
	}
	return nil
}

// Query returns what a query gives now: the labels of each series.
func (s *Server) Query(ctx context.Context, expr string) ([]map[string]string, error) {
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	if err := s.ask(ctx, "/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		return nil, err
	}
	out := make([]map[string]string, 0, len(data.Result))
	for _, r := range data.Result {
		out = append(out, r.Metric)
	}
	return out, nil
}

// Rule is a rule for alerts. State is inactive, pending or firing; Health is ok if it could be evaluated, and LastError is why not.
type Rule struct {
	Name, State, Health, LastError string
	// Alerts are those that are pending or firing.
	Alerts []struct {
		State  string
		Labels map[string]string
	}
}

// Rules returns all rules, in their order.
func (s *Server) Rules(ctx context.Context) ([]Rule, error) {
	var data struct {
		Groups []struct{ Rules []Rule }
	}
	if err := s.ask(ctx, "/api/v1/rules", nil, &data); err != nil {
		return nil, err
	}
	var out []Rule
	for _, g := range data.Groups {
		out = append(out, g.Rules...)
	}
	return out, nil
}
