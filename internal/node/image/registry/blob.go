// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// maxResumptions is how many times the connection of a layer may break.
const maxResumptions = 4

// errIdle is why a connection is given up.
var errIdle = errors.New("the registry sends nothing")

// digestOf returns the digest of a text.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// get sends a request for a manifest or a blob, from a byte on.
func (s *source) get(ctx context.Context, kind, identifier string, offset int64) (*http.Response, error) {
	// The scheme becomes http if the host has answered to nothing else, and is listed.
	u := url.URL{Scheme: "https", Host: s.host, Path: "/v2/" + s.repository + "/" + kind + "/" + identifier}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", s.host, err)
	}
	if kind == "manifests" {
		request.Header.Set("Accept", accepted())
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	statuses := []int{http.StatusOK}
	if offset > 0 {
		statuses = append(statuses, http.StatusPartialContent)
	}
	if err := transport.CheckError(response, statuses...); err != nil {
		_ = response.Body.Close()
		return nil, s.explain(ctx, err)
	}
	return response, nil
}

// fetch returns a small document and its content type.
func (s *source) fetch(ctx context.Context, kind, identifier string, limit int64) (text []byte, contentType string, err error) {
	ctx, idle := newIdleTimer(ctx, s.idleTimeout)
	defer idle.stop()
	response, err := s.get(ctx, kind, identifier, 0)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(idle.reader(response.Body), limit+1))
	switch {
	case err != nil:
		return nil, "", s.broken(ctx, err)
	case int64(len(text)) > limit:
		return nil, "",
			s.failure(Unsupported, nil, "%s sends a manifest of more than %d bytes for image %s: build it with fewer layers", s.host, limit, s.image)
	}
	return text, response.Header.Get("Content-Type"), nil
}

// broken returns the error of an answer that did not end.
func (s *source) broken(ctx context.Context, cause error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errIdle) {
		return s.explain(ctx, cause)
	}
	return s.failure(Unreachable, unexpected(cause), "the connection to %s broke while image %s was read: try again later, or check the node's network",
		s.host, s.image)
}

// unexpected returns the cause of an answer that was too short. To whoever reads it, this is not the end.
func unexpected(cause error) error {
	if errors.Is(cause, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return cause
}

// stream is the content of a blob that is checked while it is read.
type stream struct {
	source *source
	blob   Layer
	// caller is the context of whoever reads.
	caller context.Context
	body   io.ReadCloser
	idle   *idleTimer
	// read is how many bytes were handed out, all of which sum has seen.
	read int64
	sum  hash.Hash
	// resumptions is how many times the connection broke.
	resumptions int
	// err is what every further call returns.
	err error
}

// open begins to read a blob.
func (s *source) open(ctx context.Context, blob Layer) (io.ReadCloser, error) {
	r := &stream{source: s, blob: blob, caller: ctx, sum: sha256.New()}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// connect asks for the bytes that have not been read.
func (r *stream) connect(ctx context.Context) error {
	ctx, idle := newIdleTimer(ctx, r.source.idleTimeout)
	response, err := r.source.get(ctx, "blobs", r.blob.Digest, r.read) //nolint:bodyclose // disconnect closes it
	if err != nil {
		idle.stop()
		return err
	}
	r.body, r.idle = response.Body, idle
	skip, rest := int64(0), r.blob.Size-r.read
	if response.StatusCode == http.StatusOK {
		skip, rest = r.read, r.blob.Size
	}
	if response.ContentLength >= 0 && response.ContentLength != rest {
		r.disconnect()
		return r.source.failure(Corrupt, nil, "%s has %d bytes of %s, and the manifest of image %s has %d: push the image again", r.source.host,
			response.ContentLength+r.blob.Size-rest, r.blob.Digest, r.source.image, r.blob.Size)
	}
	// A host that does not know ranges sends everything again.
	if _, err := io.CopyN(io.Discard, r.idle.reader(r.body), skip); err != nil {
		r.disconnect()
		return r.source.broken(ctx, err)
	}
	return nil
}

// disconnect ends a connection.
func (r *stream) disconnect() {
	if r.body != nil {
		_ = r.body.Close()
		r.idle.stop()
		r.body = nil
	}
}

// Close ends the stream. It is not an error to leave out the rest.
func (r *stream) Close() error {
	r.disconnect()
	if r.err == nil {
		r.err = errors.New("the stream of the layer is closed")
	}
	return nil
}

// Read is part of io.Reader.
func (r *stream) Read(p []byte) (int, error) {
	for r.err == nil {
		if len(p) == 0 {
			return 0, nil
		}
		n, err := r.idle.reader(r.body).Read(p)
		r.read += int64(n)
		_, _ = r.sum.Write(p[:n])
		switch {
		case r.read > r.blob.Size:
			r.err = r.source.failure(Corrupt, nil, "%s sends more bytes of %s for image %s than the %d of its manifest: push the image again",
				r.source.host, r.blob.Digest, r.source.image, r.blob.Size)
			return 0, r.err
		case err != nil && r.read == r.blob.Size:
			r.err = r.verdict()
		case err != nil:
			r.err = r.resume(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, r.err
}

// verdict returns io.EOF if the bytes are those of the digest.
func (r *stream) verdict() error {
	r.disconnect()
	if got := "sha256:" + hex.EncodeToString(r.sum.Sum(nil)); got != r.blob.Digest {
		return r.source.failure(Corrupt, nil, "%s sends other bytes for image %s than those of %s: push the image again",
			r.source.host, r.source.image, r.blob.Digest)
	}
	return io.EOF
}

// resume makes a connection again that broke, and returns an error if it does not.
func (r *stream) resume(cause error) error {
	r.disconnect()
	if r.caller.Err() != nil {
		return r.source.explain(r.caller, cause)
	}
	if r.resumptions++; r.resumptions > maxResumptions {
		return r.source.failure(Unreachable, unexpected(cause),
			"%s ended %d times before all %d bytes of %s for image %s: try again later, or push the image again",
			r.source.host, r.resumptions, r.blob.Size, r.blob.Digest, r.source.image)
	}
	return r.connect(r.caller)
}

// idleTimer ends a context when nothing comes for a while.
type idleTimer struct {
	timeout time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

// newIdleTimer returns a context and its timer, which does not run yet.
func newIdleTimer(ctx context.Context, timeout time.Duration) (context.Context, *idleTimer) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(timeout, func() { cancel(errIdle) })
	timer.Stop()
	return ctx, &idleTimer{timeout: timeout, timer: timer, cancel: cancel}
}

// stop ends the context.
func (t *idleTimer) stop() {
	t.timer.Stop()
	t.cancel(nil)
}

// reader returns a reader each of whose calls may take the timeout.
func (t *idleTimer) reader(r io.Reader) io.Reader { return idleReader{t, r} }

// idleReader is what reader returns.
type idleReader struct {
	timer *idleTimer
	next  io.Reader
}

// Read is part of io.Reader.
func (r idleReader) Read(p []byte) (int, error) {
	r.timer.timer.Reset(r.timer.timeout)
	defer r.timer.timer.Stop()
	return r.next.Read(p)
}
