// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Reason is why an image cannot be read.
type Reason string

// The reasons of errors.
const (
	// Unauthorized: the registry wants another login, or one at all.
	Unauthorized Reason = "unauthorized"
	// Denied: the login is good, and not for this image.
	Denied Reason = "denied"
	// NotFound: the registry has no such image.
	NotFound Reason = "not found"
	// RateLimited: the registry has answered this login or this address too often.
	RateLimited Reason = "rate limited"
	// Unavailable: the registry is broken.
	Unavailable Reason = "unavailable"
	// Unreachable: no answer came from the registry.
	Unreachable Reason = "unreachable"
	// Untrusted: the registry cannot prove who it is.
	Untrusted Reason = "untrusted"
	// WrongPlatform: the image is for other nodes.
	WrongPlatform Reason = "wrong platform"
	// Corrupt: the registry sent other bytes than it promised.
	Corrupt Reason = "corrupt"
	// Unsupported: the image has a format that is not read.
	Unsupported Reason = "unsupported"
	// Refused: this program does not do what the registry asks for.
	Refused Reason = "refused"
)

// Error is why an image cannot be read, as a sentence.
type Error struct {
	// Reason is for programs.
	Reason Reason
	// Host is the registry, or the mirror that was asked.
	Host string
	// Image is the image.
	Image string
	// RetryAfter is how long the registry wants to be left alone, if it has said so.
	RetryAfter time.Duration

	message string
	cause   error
}

// Error is part of error.
func (e *Error) Error() string { return e.message }

// Unwrap is what errors.Is looks at. The causes may hold URLs, and are not for users.
func (e *Error) Unwrap() error { return e.cause }

// failure returns an error of this source.
func (s *source) failure(reason Reason, cause error, format string, args ...any) *Error {
	return &Error{Reason: reason, Host: s.host, Image: s.image, message: fmt.Sprintf(format, args...), cause: cause}
}

// explain returns an error for users. The order matters: an insecure registry is asked in two ways, and both errors are there.
func (s *source) explain(ctx context.Context, err error) error {
	if _, is := errors.AsType[*Error](err); is {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("reading image %s from %s: %w", s.image, s.host, context.Cause(ctx))
	}
	host := s.host
	if asked, is := errors.AsType[*hostError](err); is {
		host = asked.host
	}
	if status, is := errors.AsType[*statusError](err); is {
		return s.explainBusy(status)
	}
	if answer, is := errors.AsType[*transport.Error](err); is {
		return s.explainStatus(answer.StatusCode, err)
	}
	if dns, is := errors.AsType[*net.DNSError](err); is {
		return s.failure(Unreachable, err, "the host name %s of image %s cannot be resolved: check its spelling and the node's DNS",
			dns.Name, s.image)
	}
	if record, is := errors.AsType[tls.RecordHeaderError](err); is {
		// The first bytes of an answer stand where TLS has a header.
		if string(record.RecordHeader[:]) == "HTTP/" {
			return s.failure(Untrusted, err, "%s speaks HTTP and not HTTPS for image %s: the administrator may list it as insecure", host, s.image)
		}
		return s.failure(Untrusted, err, "%s does not speak HTTPS for image %s: check the port", host, s.image)
	}
	if why := distrust(err); why != "" {
		return s.failure(Untrusted, err, "the certificate of %s for image %s is not trusted, since %s", host, s.image, why)
	}
	if operation, is := errors.AsType[*net.OpError](err); is && operation.Op == "proxyconnect" {
		return s.failure(Unreachable, err, "the proxy to %s for image %s does not answer: check the variables http_proxy and https_proxy",
			host, s.image)
	}
	if brief(err) {
		return s.failure(Unreachable, err, "%s does not answer to requests for image %s: try again later, or check the node's network",
			host, s.image)
	}
	if refused, is := errors.AsType[*refusedError](err); is {
		return s.failure(Refused, err, "%s is not asked for image %s: %s", host, s.image, refused.why)
	}
	return s.failure(Unreachable, err, "the answer of %s for image %s cannot be understood: check that it is a registry", host, s.image)
}

// explainBusy returns the error of a host that wants to be asked later.
func (s *source) explainBusy(status *statusError) error {
	e := s.failure(Unavailable, status, "%s answers %d %s for image %s: try again later", status.host, status.status,
		http.StatusText(status.status), s.image)
	if status.status == http.StatusTooManyRequests {
		e.Reason = RateLimited
		when, login := "later", ""
		if status.retryAfter > 0 {
			when = "in " + status.retryAfter.Round(time.Second).String()
		}
		if s.login.Anonymous() {
			login = ", or log in for a higher limit"
		}
		e.message = fmt.Sprintf("%s limits requests and does not hand out image %s (429): try again %s%s", status.host, s.image, when, login)
	}
	e.RetryAfter = status.retryAfter
	return e
}

// explainStatus returns the error of an answer that will not change by itself.
func (s *source) explainStatus(status int, cause error) error {
	const file = "~/.config/enroot/.credentials"
	switch {
	case s.login.Anonymous() && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		hint := ""
		if s.login.Hint != "" {
			hint = "; " + s.login.Hint
		}
		return s.failure(Unauthorized, cause, "%s wants a login for image %s, or has no such image (%d): "+
			"check its name, or add \"machine %s login USER password PASSWORD\" to %s%s", s.host, s.image, status, hostname(s.host), file, hint)
	case status == http.StatusUnauthorized:
		return s.failure(Unauthorized, cause, "%s does not take the login for image %s, or has no such image (401): "+
			"check its name, and the entry of %s in %s", s.host, s.image, hostname(s.host), file)
	case status == http.StatusForbidden:
		return s.failure(Denied, cause, "%s does not let this login read image %s (403): ask its owner for access", s.host, s.image)
	case status == http.StatusNotFound:
		return s.failure(NotFound, cause, "%s has no image %s (404): check its name and its tag", s.host, s.image)
	}
	return s.failure(Unavailable, cause, "%s answers %d %s for image %s: check that it is a registry", s.host, status,
		cmp.Or(http.StatusText(status), "(an unknown status)"), s.image)
}

// hostname returns a host as netrc files name it, without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// distrust returns what is wrong about a certificate, or nothing if the error is another one.
func distrust(err error) string {
	const authority = "its authority is unknown: put the authority's certificate into SSL_CERT_DIR"
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return authority
	}
	if wrong, is := errors.AsType[x509.HostnameError](err); is {
		return fmt.Sprintf("it is not for the name %s: check the name of the registry", wrong.Host)
	}
	if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is {
		if invalid.Reason == x509.Expired {
			return "it has expired or is not valid yet: check the node's clock, and ask the registry's administrator"
		}
		return "it is not valid: ask the registry's administrator"
	}
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return authority
	}
	if _, is := errors.AsType[tls.AlertError](err); is {
		return "the handshake of TLS is refused: check that it speaks TLS 1.2 or newer"
	}
	return ""
}
