// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi is the little that localkube itself asks an apiserver. It
// spares the tool client-go, which would make it slow to compile.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Client talks to one apiserver as its administrator.
type Client struct {
	http   *http.Client
	server string
}

// New returns a client for the apiserver at the URL server that uses ca.crt,
// admin.crt and admin.key in dir.
func New(server, dir string) (*Client, error) {
	return newClient(server, dir, "admin")
}

// NewAnonymous returns a client that trusts ca and has no certificate.
func NewAnonymous(server, ca string) (*Client, error) {
	return newClient(server, filepath.Dir(ca), "")
}

func newClient(server, dir, user string) (*Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AppendCertsFromPEM(ca)
	if user != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, user+".crt"), filepath.Join(dir, user+".key"))
		if err != nil {
			return nil, fmt.Errorf("reading the certificate of %s: %w", user, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	// A proxy of the environment must not see local traffic, hence no ProxyFromEnvironment.
	transport := &http.Transport{TLSClientConfig: config, TLSHandshakeTimeout: 5 * time.Second, IdleConnTimeout: 30 * time.Second}
	return &Client{http: &http.Client{Transport: transport, Timeout: 20 * time.Second}, server: server}, nil
}

// Ready returns nil when the apiserver reports that it is ready to serve.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodGet, "/readyz", "", nil)
	return err
}

// Get reads the object at an API path into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	b, err := c.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// Apply applies a list of YAML documents by server-side apply. Each document
// names its API path in a comment line that begins with "# /".
func (c *Client) Apply(ctx context.Context, documents []byte) error {
	for document := range bytes.SplitSeq(documents, []byte("\n---\n")) {
		path, err := documentPath(string(document))
		if err != nil {
			return err
		}
		query := "?fieldManager=localkube&force=true"
		if _, err := c.do(ctx, http.MethodPatch, path+query, "application/apply-patch+yaml", document); err != nil {
			return err
		}
	}
	return nil
}

func documentPath(document string) (string, error) {
	for line := range strings.Lines(document) {
		if strings.HasPrefix(line, "# /") {
			return strings.TrimSpace(line[len("# "):]), nil
		}
	}
	return "", fmt.Errorf("applying a manifest: no line \"# /API/PATH\" in %q", document)
}

// Delete removes the object at an API path; that it is already gone is no error.
func (c *Client) Delete(ctx context.Context, path string) error {
	_, err := c.do(ctx, http.MethodDelete, path, "", nil)
	if status := (*StatusError)(nil); errors.As(err, &status) && status.Code == http.StatusNotFound {
		return nil
	}
	return err
}

// StatusError is an answer of the apiserver other than 2xx.
type StatusError struct {
	Code         int
	Method, Path string
	Body         string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: HTTP %d: %s", e.Method, e.Path, e.Code, e.Body)
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking the apiserver: %w", err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the apiserver: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("asking the apiserver: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return nil, &StatusError{Code: response.StatusCode, Method: method, Path: path, Body: strings.TrimSpace(string(answer))}
	}
	return answer, nil
}
