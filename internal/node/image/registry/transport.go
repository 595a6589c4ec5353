// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

const (
	// dialTimeout is how long a host may take for a connection.
	dialTimeout = 30 * time.Second
	// headerTimeout is how long a host may take to begin an answer.
	headerTimeout = time.Minute
	// idleConnections is how many connections to a host are kept for further layers.
	idleConnections = 16
	// pingPath is what a registry is asked for first. Only the headers of its answer matter.
	pingPath = "/v2/"
	// maxRedirects is how many times a request follows a redirect.
	maxRedirects = 10
)

// newTransport returns what sends requests, through the proxies and with the certificates of an environment.
func newTransport(environment credentials.Environment) (*http.Transport, error) {
	roots, err := rootsOf(environment)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                 proxyOf(environment),
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext,
		ForceAttemptHTTP2:     true,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   idleConnections,
		// Layers are read as they are stored, and their digests are those of the compressed bytes.
		DisableCompression: true,
	}, nil
}

// proxyOf returns which proxy a request takes. Names in lower case count before those in upper case, as with curl.
func proxyOf(environment credentials.Environment) func(*http.Request) (*url.URL, error) {
	variable := func(name string) string {
		lower, _ := environment(name)
		upper, _ := environment(strings.ToUpper(name))
		return cmp.Or(lower, upper)
	}
	all := variable("all_proxy")
	proxy := (&httpproxy.Config{
		HTTPProxy:  cmp.Or(variable("http_proxy"), all),
		HTTPSProxy: cmp.Or(variable("https_proxy"), all),
		NoProxy:    variable("no_proxy"),
	}).ProxyFunc()
	return func(request *http.Request) (*url.URL, error) { return proxy(request.URL) }
}

// rootsOf returns the authorities that may sign certificates: those of the system, and those of SSL_CERT_FILE and SSL_CERT_DIR. Nil stands
// for those of the system.
func rootsOf(environment credentials.Environment) (*x509.CertPool, error) {
	var files []string
	if file, _ := environment("SSL_CERT_FILE"); file != "" {
		files = append(files, file)
	}
	directories, _ := environment("SSL_CERT_DIR")
	for _, directory := range filepath.SplitList(directories) {
		entries, err := os.ReadDir(directory)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading certificates of SSL_CERT_DIR: %w", err)
		}
		for _, entry := range entries {
			files = append(files, filepath.Join(directory, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for i, file := range files {
		text, err := os.ReadFile(filepath.Clean(file))
		switch {
		case err == nil && roots.AppendCertsFromPEM(text):
		case i > 0 || directories != "" && filepath.Dir(file) == filepath.Clean(directories):
			// A directory may hold other files, and links to nothing.
		case err != nil:
			return nil, fmt.Errorf("reading certificates of SSL_CERT_FILE: %w", err)
		default:
			return nil, fmt.Errorf(
				"reading certificates of SSL_CERT_FILE: %s has none in PEM: give a file that begins with -----BEGIN CERTIFICATE-----", file)
		}
	}
	return roots, nil
}

// refusedError is a request that is not sent, whoever wants it.
type refusedError struct{ why string }

// Error is part of error.
func (e *refusedError) Error() string { return e.why }

// hostError is an error with the host that was asked, which may be another one than the registry.
type hostError struct {
	host  string
	cause error
}

// Error is part of error.
func (e *hostError) Error() string { return "asking " + e.host + ": " + e.cause.Error() }

// Unwrap is what errors.Is looks at.
func (e *hostError) Unwrap() error { return e.cause }

// guard keeps the promises that do not depend on what a registry answers.
type guard struct {
	next     http.RoundTripper
	insecure map[string]bool
}

// RoundTrip sends a request.
//
//	HTTP, and the host is not listed  → refused, so that nobody on the way reads or changes anything
//	redirected to another host        → sent without the login, which is the first host's
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	host := strings.ToLower(request.URL.Host)
	if request.URL.Scheme != "https" && !g.insecure[host] {
		return nil, &hostError{host, &refusedError{"it is asked by HTTP, and the administrator has not listed it as insecure"}}
	}
	if !strings.EqualFold(firstHost(request), host) && request.Header.Get("Authorization") != "" {
		request = request.Clone(request.Context())
		request.Header.Del("Authorization")
	}
	response, err := g.next.RoundTrip(request)
	if err != nil {
		return nil, &hostError{host, err}
	}
	if request.URL.Path == pingPath {
		// Its reader reads all of it.
		response.Body = limited{io.LimitReader(response.Body, maxDrainBytes), response.Body}
	}
	return response, nil
}

// limited is a body of which only the beginning is read.
type limited struct {
	io.Reader
	io.Closer
}

// firstHost returns the host of the request that was redirected, once or several times, to a request.
func firstHost(request *http.Request) string {
	for range maxRedirects + 1 {
		if request.Response == nil || request.Response.Request == nil {
			break
		}
		request = request.Response.Request
	}
	return request.URL.Host
}

// checkRedirect ends a chain of redirects.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &hostError{request.URL.Host, &refusedError{fmt.Sprintf("more than %d redirects lead to it", maxRedirects)}}
	}
	return nil
}
