// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const (
	// firstDelay is how long the second attempt waits at most. Each further one waits twice as long.
	firstDelay = time.Second
	// maxDelay is the longest wait that is our own choice.
	maxDelay = 16 * time.Second
	// maxRetryAfter is the longest wait that a registry may ask for. The user hears of a longer one, and decides.
	maxRetryAfter = time.Minute
	// maxDrainBytes is how much of an answer is read so that its connection can be used again.
	maxDrainBytes = 64 << 10
)

// statusError is an answer that says to come back later, after the last attempt.
type statusError struct {
	host string
	// status is the code of HTTP.
	status int
	// attempts is how many times the host was asked.
	attempts int
	// retryAfter is how long the host wants to be left alone. It is 0 if it has not said so.
	retryAfter time.Duration
}

// Error is part of error.
func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers %d %s", e.host, e.status, http.StatusText(e.status))
}

// retrying sends a request again if another attempt may help.
//
//	429, 503 with Retry-After of up to a minute → when the host says
//	429, 500, 502, 503, 504, 408                → after one, two, four seconds at most, so that nodes do not come back together
//	no connection, or one that broke            → the same
//	another answer                              → no more attempts
type retrying struct {
	next     http.RoundTripper
	attempts int
	now      func() time.Time
	wait     func(context.Context, time.Duration) error
}

// RoundTrip sends a request up to the number of attempts.
func (r *retrying) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	for attempt := 1; ; attempt++ {
		response, err := r.next.RoundTrip(request)
		var failed error
		delay := backoff(attempt)
		switch {
		case err != nil && !brief(err):
			return nil, err
		case err != nil:
			failed = err
		case !busy(response.StatusCode):
			return response, nil
		default:
			after := retryAfter(response.Header.Get("Retry-After"), r.now())
			failed = &statusError{request.URL.Host, response.StatusCode, attempt, after}
			_, _ = io.CopyN(io.Discard, response.Body, maxDrainBytes)
			_ = response.Body.Close()
			if after > maxRetryAfter {
				return nil, failed
			}
			delay = max(delay, after)
		}
		if attempt >= r.attempts || ctx.Err() != nil {
			return nil, failed
		}
		again, err := rewound(request)
		if err != nil {
			return nil, failed
		}
		request = again
		if err := r.wait(ctx, delay); err != nil {
			return nil, err
		}
	}
}

// rewound returns a request that can be sent once more.
func rewound(request *http.Request) (*http.Request, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return request, nil
	}
	if request.GetBody == nil {
		return nil, errors.New("the body of the request has been sent")
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, fmt.Errorf("reading the body of the request again: %w", err)
	}
	again := request.Clone(request.Context())
	again.Body = body
	return again, nil
}

// backoff returns how long to wait after an attempt: between half of the delay and all of it.
func backoff(attempt int) time.Duration {
	delay := min(firstDelay<<min(attempt-1, 8), maxDelay)
	return delay/2 + rand.N(delay/2) //nolint:gosec // a jitter keeps nodes apart and is no secret
}

// busy reports whether a host that answers with a status may answer otherwise later.
func busy(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// brief reports whether an error of the network may be over soon.
func brief(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if dns, is := errors.AsType[*net.DNSError](err); is {
		return dns.IsTemporary || dns.IsTimeout
	}
	for _, broken := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	timeout, is := errors.AsType[net.Error](err)
	return is && timeout.Timeout()
}

// retryAfter reads the header of that name: seconds, or a time (RFC 9110, section 10.2.3). It is 0 if there is none.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
