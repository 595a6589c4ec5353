// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry reads container images from registries: which manifest an image has for this node, and the layers of it. It writes
// nothing, and what it hands out has the digest that the registry promised.
//
// A registry is not trusted. It may redirect, answer late, never or too much, and name a server of tokens; it may not make this package
// send a login to another host, speak HTTP where an administrator has not allowed it, or hand out other bytes than those of a digest.
//
// Each error is one sentence with the host and the image. No error has a login, or a URL, which may hold a signature.
package registry

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
)

// userAgent is what registries see of this program.
const userAgent = "coxswain"

// Options say how registries are reached. The zero value is good for public ones.
type Options struct {
	// Platform is what images have to be for. By default it is linux with the architecture of this program.
	Platform Platform
	// Insecure has hosts, with their ports, that may be asked by HTTP if they do not answer to HTTPS.
	Insecure []string
	// Mirrors has, by registry, hosts that are asked before it, in this order. Docker Hub is docker.io.
	Mirrors map[string][]string
	// MirrorFailed is called when a mirror was asked in vain and the next host is asked, if it is not nil.
	MirrorFailed func(mirror string, err error)
	// Environment has the proxies (http_proxy, https_proxy, all_proxy, no_proxy) and SSL_CERT_FILE and SSL_CERT_DIR. Nil has none.
	Environment credentials.Environment
	// Attempts is how many times a request is sent to a registry that is overloaded or broken, 4 by default. A mirror is asked once.
	Attempts int
	// IdleTimeout is how long a registry may send nothing while a layer is read, 2 minutes by default.
	IdleTimeout time.Duration
	// Now returns the time, time.Now by default.
	Now func() time.Time
	// Wait waits between attempts. By default it waits for real.
	Wait func(context.Context, time.Duration) error
}

// Login returns the login for a repository of a host, which is the registry or a mirror of it. Nil logs in nowhere.
type Login func(host, repository string) (credentials.Credentials, error)

// Client asks registries. Several goroutines may use it.
type Client struct {
	platform     Platform
	insecure     map[string]bool
	mirrors      map[string][]string
	mirrorFailed func(string, error)
	idleTimeout  time.Duration
	// patient sends a request again, and hasty does not.
	patient, hasty http.RoundTripper
}

// New returns a client. It reads certificates, so that it may return an error.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	c := &Client{
		platform: o.Platform, insecure: map[string]bool{}, mirrors: map[string][]string{},
		mirrorFailed: o.MirrorFailed, idleTimeout: o.IdleTimeout,
	}
	for _, host := range o.Insecure {
		c.insecure[strings.ToLower(host)] = true
	}
	for host, mirrors := range o.Mirrors {
		if host = strings.ToLower(host); host == "docker.io" || host == "index.docker.io" {
			host = reference.DockerHub
		}
		c.mirrors[host] = mirrors
	}
	plain, err := newTransport(o.Environment)
	if err != nil {
		return nil, err
	}
	guarded := &guard{next: plain, insecure: c.insecure}
	c.patient = &retrying{next: guarded, attempts: o.Attempts, now: o.Now, wait: o.Wait}
	c.hasty = &retrying{next: guarded, attempts: 1, now: o.Now, wait: o.Wait}
	return c, nil
}

// withDefaults returns options of which everything is set that the client calls or counts with.
func (o Options) withDefaults() Options {
	if o.Platform == (Platform{}) {
		o.Platform = Platform{OS: "linux", Architecture: runtime.GOARCH}
	}
	if o.MirrorFailed == nil {
		o.MirrorFailed = func(string, error) {}
	}
	if o.Environment == nil {
		o.Environment = func(string) (string, bool) { return "", false }
	}
	if o.Attempts == 0 {
		o.Attempts = 4
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 2 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	return o
}

// wait waits for a time, or until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// source is a repository of a host that may have an image.
type source struct {
	host       string
	repository string
	// image is what errors call the image.
	image string
	// login is what the host gets.
	login credentials.Credentials
	// client sends requests with the login, or with a token that the host has given for it.
	client *http.Client
	// idleTimeout is how long the host may send nothing.
	idleTimeout time.Duration
}

// connect asks a host how it wants to be logged in to, and logs in.
func (c *Client) connect(
	ctx context.Context, host string, ref reference.Reference, login Login, patience http.RoundTripper,
) (*source, error) {
	s := &source{host: host, repository: ref.Repository, image: ref.Name(), idleTimeout: c.idleTimeout}
	if login != nil {
		var err error
		if s.login, err = login(host, ref.Repository); err != nil {
			return nil, fmt.Errorf("finding the login for %s: %w", host, err)
		}
	}
	var options []name.Option
	if c.insecure[host] {
		options = append(options, name.Insecure)
	}
	registry, err := name.NewRegistry(host, options...)
	if err != nil {
		return nil, &Error{Reason: Unsupported, Host: host, Image: s.image, cause: err,
			message: fmt.Sprintf("%s is no host that can have image %s: check the list of mirrors", host, s.image)}
	}
	auth := authn.Anonymous
	if !s.login.Anonymous() {
		auth = authn.FromConfig(authn.AuthConfig{Username: s.login.User, Password: s.login.Password, IdentityToken: s.login.IdentityToken})
	}
	scopes := []string{registry.Repo(ref.Repository).Scope(transport.PullScope)}
	logged, err := transport.NewWithContext(ctx, registry, auth, transport.NewUserAgent(patience, userAgent), scopes)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	s.client = &http.Client{Transport: logged, CheckRedirect: checkRedirect}
	return s, nil
}

// each calls do with the mirrors of a registry and then with the registry, until one succeeds. The error is that of the registry.
func (c *Client) each(ctx context.Context, host string, do func(host string, patience http.RoundTripper) error) error {
	for _, mirror := range c.mirrors[host] {
		err := do(strings.ToLower(mirror), c.hasty)
		if err == nil || ctx.Err() != nil {
			return err
		}
		c.mirrorFailed(mirror, err)
	}
	return do(host, c.patient)
}
