// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

const (
	// DefaultTimeout bounds one attempt of one call. A list of 28,000 jobs took slurmrestd 32 s.
	DefaultTimeout = 2 * time.Minute
	// DefaultMaxBytes bounds one answer. That of 91,000 jobs has as many.
	DefaultMaxBytes = 1 << 30
	// maxAttempts bounds how often a read is tried, whatever Options.Retry returns.
	maxAttempts = 4
	// maxErrorBytes bounds an answer that is not a 200.
	maxErrorBytes = 1 << 20
	// tokenHeader carries the JSON web token.
	tokenHeader = "X-Slurm-User-Token"
)

// Options change how a Client behaves; the zero value is useful.
type Options struct {
	// Transport does the HTTP. The default is one of the client's own, without proxies, which Close closes.
	Transport http.RoundTripper
	// Wrap, when it is set, wraps the transport.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Now is the clock by which tokens are issued; the default is time.Now.
	Now func() time.Time
	// Timeout bounds one attempt of one call, the body included; the default is DefaultTimeout.
	Timeout time.Duration
	// MaxBytes bounds one answer; the default is DefaultMaxBytes.
	MaxBytes int64
	// Retry is asked before a read that was Unavailable is tried again, with the number of attempts made so far. It waits as long as it
	// sees fit (jitter is its business) and returns whether to go on. There are four attempts at most. The default is not to retry.
	Retry func(ctx context.Context, attempts int) bool
	// Observe, when it is set, is called after every attempt of every call.
	Observe func(Observation)
	// Versions are the API versions to choose from, best first; the default is Versions().
	Versions []string
}

// Versions returns the versions of Slurm's REST API that this package reads, newest first.
func Versions() []string { return []string{"v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41"} }

// A Client talks to one slurmrestd. It is safe for concurrent use.
type Client struct {
	endpoint string
	issuer   token.Issuer
	options  Options
	http     http.Client
	close    func()

	mu      sync.Mutex
	version string // chosen by asking, "" before
}

// ParseEndpoint reads an endpoint like "http://slurm-restapi.default:6820". Errors do not repeat it: it may hold a password.
func ParseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil: // url.Error quotes all of it
		return nil, errors.New("reading the endpoint of slurmrestd: it is no URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("reading the endpoint of slurmrestd: it is not like http://host:port")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("reading the endpoint of slurmrestd: it has more than scheme, host, port and path")
	}
	return u, nil
}

// NewClient returns a client of the slurmrestd at an endpoint, see ParseEndpoint. It makes no call.
func NewClient(endpoint string, issuer token.Issuer, options Options) (*Client, error) {
	u, err := ParseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if issuer == nil {
		return nil, errors.New("making a client of slurmrestd: there is no token issuer")
	}
	c := &Client{endpoint: strings.TrimRight(u.String(), "/"), issuer: issuer, options: options, close: func() {}}
	if c.options.Now == nil {
		c.options.Now = time.Now
	}
	if c.options.Timeout <= 0 {
		c.options.Timeout = DefaultTimeout
	}
	if c.options.MaxBytes <= 0 {
		c.options.MaxBytes = DefaultMaxBytes
	}
	if c.options.Versions == nil {
		c.options.Versions = Versions()
	}
	c.http.Transport = options.Transport
	if c.http.Transport == nil {
		transport := &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second,

			MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConnsPerHost:    4,
			DisableCompression:     true, // slurmrestd never compresses
		}
		c.http.Transport, c.close = transport, transport.CloseIdleConnections
	}
	if options.Wrap != nil {
		c.http.Transport = options.Wrap(c.http.Transport)
	}
	// A redirect would carry the token to another host.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// String is the endpoint.
func (c *Client) String() string { return c.endpoint }

// Close closes idle connections. Calls that are under way end by their contexts.
func (c *Client) Close() { c.close() }

// A call is one request as the operations see it.
type call struct {
	method string
	daemon daemon // of whom slurmrestd asks
	path   string // below /DAEMON/VERSION/
	query  url.Values
	body   []byte
	// as makes the tokens for this call; nil: the client's issuer.
	as token.Issuer
	// longest is how many bytes the answer may have; zero: as many as any that is not a list.
	longest int64
	// repeatable is true if making the call twice does no harm.
	repeatable bool
	// decode reads the body of a 200 and returns its errors[].
	decode func(*reader) ([]slurmError, error)
}

// daemon is the daemon that slurmrestd asks, as the first part of the URL's path.
type daemon string

const (
	slurmctld daemon = "slurm"
	slurmdbd  daemon = "slurmdb"
)

// do makes a call in a version that slurmrestd serves, retries it where that is safe, and returns nil or *Error.
func (c *Client) do(ctx context.Context, call call) (unchanged bool, err error) {
	for attempts := 1; ; attempts++ {
		unchanged, err = c.inVersion(ctx, call)
		if err == nil || !call.repeatable || !errors.Is(err, Unavailable) || ctx.Err() != nil ||
			attempts >= maxAttempts || c.options.Retry == nil || !c.options.Retry(ctx, attempts) {
			return unchanged, err
		}
	}
}

// attempt makes a call once and reports it to the observer.
func (c *Client) attempt(ctx context.Context, version string, call call) (unchanged bool, err error) {
	seen := Observation{Call: call.String(), Sent: int64(len(call.body))}
	began := c.options.Now()
	unchanged, err = c.exchange(ctx, version, call, &seen)
	seen.Result, seen.Took = resultOf(unchanged, err), c.options.Now().Sub(began)
	if seen.Worked == 0 {
		seen.Worked = seen.Took
	}
	if c.options.Observe != nil {
		c.options.Observe(seen)
	}
	return unchanged, err
}

// exchange makes a call once, counts the bytes of the answer and notes how long it took to begin.
func (c *Client) exchange(ctx context.Context, version string, call call, seen *Observation) (unchanged bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	as := c.issuer
	if call.as != nil {
		as = call.as
	}
	secret, _, err := as.Token(c.options.Now())
	if err == nil && secret == "" {
		err = errors.New("the issuer gave an empty token")
	}
	if err != nil {
		return false, &Error{Kind: Unauthorized, Err: err}
	}
	target := c.endpoint + "/" + string(cmp.Or(call.daemon, slurmctld)) + "/" + version + "/" + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	var body io.Reader
	if call.body != nil {
		body = bytes.NewReader(call.body)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, target, body)
	if err != nil {
		return false, &Error{Kind: Malformed, Err: err}
	}
	request.Header.Set(tokenHeader, secret)
	request.Header.Set("Accept", "application/json")
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	began := c.options.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return false, &Error{Kind: Unavailable, Err: withoutURL(err)}
	}
	defer response.Body.Close()      //nolint:errcheck // nothing follows from it
	if response.ContentLength >= 0 { // else it is sent while it is made
		seen.Worked = c.options.Now().Sub(began)
	}
	response.Body = &counted{ReadCloser: response.Body, n: &seen.Received}
	return c.classify(response, call, secret)
}

// withoutURL returns the cause of net/http's error, whose text repeats the URL.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// classify reads a response and returns what it means. The secret is kept out of errors, should a server echo it.
func (c *Client) classify(response *http.Response, call call, secret string) (unchanged bool, err error) {
	status := response.StatusCode
	switch {
	case status == http.StatusNotModified:
		if call.query.Has("update_time") {
			return true, nil
		}
		return false, &Error{Kind: Malformed, Status: status, Message: "unchanged, without having been asked"}
	case status == http.StatusOK:
		errs, err := call.decode(newReader(newScanner(response.Body, min(c.options.MaxBytes, cmp.Or(call.longest, maxOtherBytes)))))
		switch {
		case err != nil:
			return false, &Error{Kind: kindOfRead(err), Status: status, Err: err}
		case len(errs) > 0:
			return noChange(fromSlurm(status, errs, secret), call)
		}
		return false, nil
	case status >= 300 && status < 400:
		return false, &Error{Kind: Malformed, Status: status, Message: "redirected, which slurmrestd never does"}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
	if err != nil {
		return false, &Error{Kind: Unavailable, Status: status, Err: err}
	}
	if errs, err := decodeResult(newReader(newScanner(bytes.NewReader(body), maxErrorBytes))); err == nil && len(errs) > 0 {
		return noChange(fromSlurm(status, errs, secret), call)
	}
	return false, unexplained(status)
}

// noChange separates Slurm's "no change in data" from errors.
func noChange(e *Error, call call) (bool, error) {
	if e.Code == CodeNoChange && call.query.Has("update_time") {
		return true, nil
	}
	return false, e
}

// unexplained classifies an answer without errors[]: it may be slurmrestd's own, which writes one line of text, or that
// of a proxy.
func unexplained(status int) *Error {
	e := &Error{Status: status, Message: http.StatusText(status)}
	switch {
	case status == http.StatusNotFound:
		e.Kind, e.Err = Malformed, errNotServed
	case status >= 500 && kindOf(status, 0) != Unauthorized:
		e.Kind = Unavailable
	case status < 300:
		e.Kind = Malformed
	default:
		e.Kind = kindOf(status, 0)
	}
	return e
}

// kindOfRead distinguishes a wrong answer from one that did not arrive.
func kindOfRead(err error) Kind {
	var syntax *syntaxError
	var bound Bound
	if errors.As(err, &syntax) || errors.As(err, &bound) || errors.Is(err, errNoList) || errors.Is(err, errUndated) || errors.Is(err, errNameless) ||
		errors.Is(err, errOthers) || errors.Is(err, errNoStatistics) || errors.Is(err, errNoJob) || errors.Is(err, errNoStatus) {
		return Malformed
	}
	return Unavailable
}

// errNotServed is a 404 that is not Slurm's answer about an object.
var errNotServed = errors.New("this URL is not served")

// inVersion makes a call in the version chosen before, or chooses one. A slurmrestd that was up- or downgraded answers 404 to a version
// that it no longer has; then the choice is made again, once. Nothing has happened at a 404, so that this is safe for writes too.
func (c *Client) inVersion(ctx context.Context, call call) (unchanged bool, err error) {
	version, fresh, err := c.chooseVersion(ctx)
	if err != nil {
		return false, err
	}
	unchanged, err = c.attempt(ctx, version, call)
	if fresh || !errors.Is(err, errNotServed) {
		return unchanged, err
	}
	c.forget(version)
	if version, _, err = c.chooseVersion(ctx); err != nil {
		return false, err
	}
	return c.attempt(ctx, version, call)
}

// Version returns the API version in use, for example "v0.0.45", and asks slurmrestd for it when that is not known yet.
func (c *Client) Version(ctx context.Context) (string, error) {
	version, _, err := c.chooseVersion(ctx)
	if err != nil {
		return "", fmt.Errorf("choosing the REST version of %s: %w", c, err)
	}
	return version, nil
}

// needs returns an error when slurmrestd serves only versions before the one in which something can be done.
func (c *Client) needs(ctx context.Context, version, what string) error {
	spoken, _, err := c.chooseVersion(ctx)
	if err != nil {
		return err
	}
	if spoken < version {
		return &Error{Kind: Refused, Message: "this slurmrestd supports at most API version " + spoken + ", and only " + version + " and later can " + what}
	}
	return nil
}

func (c *Client) forget(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		c.version = ""
	}
}

// chooseVersion pings with each version, newest first, until one is served. Ping is the cheapest call there is, and it
// succeeds while slurmctld is away.
func (c *Client) chooseVersion(ctx context.Context) (version string, fresh bool, err error) {
	c.mu.Lock()
	version = c.version
	c.mu.Unlock()
	if version != "" {
		return version, false, nil
	}
	ping := call{method: http.MethodGet, path: "ping/", decode: func(r *reader) ([]slurmError, error) {
		_, _, errs, err := decodePings(r)
		return errs, err
	}}
	for _, version := range c.options.Versions {
		_, err := c.attempt(ctx, version, ping)
		if errors.Is(err, errNotServed) {
			continue
		}
		if err != nil {
			return "", false, err
		}
		c.mu.Lock()
		c.version = version
		c.mu.Unlock()
		return version, true, nil
	}
	return "", false, &Error{Kind: Malformed, Status: http.StatusNotFound,
		Message: "none of the versions " + strings.Join(c.options.Versions, ", ") + " is served"}
}
