// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"bytes"
	"io"
	"net/http"
)

// Transport answers requests to any host in the process itself, without a network: for simulations, and for tests whose
// time is synthetic.
func (s *Slurm) Transport() http.RoundTripper { return transport{s} }

type transport struct{ slurm *Slurm }

// RoundTrip lets the fake answer.
func (t transport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if cut := recover(); cut != nil {
			if cut != http.ErrAbortHandler { //nolint:errorlint // what is recovered is compared as net/http does
				panic(cut)
			}
			response, err = nil, io.ErrUnexpectedEOF
		}
	}()
	request := r.Clone(r.Context())
	if request.Body == nil {
		request.Body = http.NoBody
	}
	defer request.Body.Close() //nolint:errcheck // nothing follows from it
	w := &memory{header: http.Header{}, status: http.StatusOK}
	t.slurm.ServeHTTP(w, request)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// memory is a ResponseWriter that keeps the answer.
type memory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is part of http.ResponseWriter.
func (m *memory) Header() http.Header { return m.header }

// WriteHeader is part of http.ResponseWriter.
func (m *memory) WriteHeader(status int) { m.status = status }

// Write is part of http.ResponseWriter.
func (m *memory) Write(p []byte) (int, error) { return m.body.Write(p) }
