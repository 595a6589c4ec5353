// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// progressAnnotation is on the Job that fills a jail. The operator shows its value.
const progressAnnotation = "coxswain.dev/populate-progress"

// annotate writes the progress onto the Job. One call of an API needs no client library, which would make the program ten times as large.
func annotate(ctx context.Context, o populateOptions, value string) error {
	read := func(name string) (string, error) {
		content, err := os.ReadFile(filepath.Join(o.serviceAccount, name)) //nolint:gosec // a path of the command line
		return strings.TrimSpace(string(content)), err
	}
	namespace, err1 := read("namespace")
	token, err2 := read("token")
	authority, err3 := read("ca.crt")
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("reading the service account: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return errors.New("reading the service account: ca.crt has no certificate")
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{progressAnnotation: value}}})
	if err != nil {
		return fmt.Errorf("encoding the progress: %w", err)
	}
	target, err := url.JoinPath(o.server, "apis/batch/v1/namespaces", namespace, "jobs", o.job)
	if err != nil {
		return fmt.Errorf("naming Job %s: %w", o.job, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, target+"?fieldManager=populate-jail", bytes.NewReader(patch))
	if err != nil {
		return fmt.Errorf("patching Job %s: %w", o.job, err)
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("patching Job %s: %w", o.job, err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("patching Job %s: %w", o.job, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("patching Job %s: %s: %s", o.job, response.Status, cut(string(body)))
	}
	return nil
}
