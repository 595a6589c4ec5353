// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// serveEvents sends what changes on the page of a cluster. The browser sends which version it has: the one that it loaded, or the last
// one that it was sent before the connection was interrupted.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request, key slurmcache.Key) {
	b, ok := s.board(w, r, key)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	leave, ok := s.enter(b)
	if !ok {
		http.Error(w, "too many browsers follow status pages, or the operator is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	s.Wake() // changes before this stream was there have woken nobody
	position := r.Header.Get("Last-Event-ID")
	if position == "" {
		position = r.URL.Query().Get("since")
	}
	w.Header().Set("X-Accel-Buffering", "no") // nginx would wait for more
	w.Header().Set("Connection", "close")     // what is left of the write timeout is not for another request
	out := &eventWriter{w: w, controller: http.NewResponseController(w), timeout: s.limits.write}
	if err := out.comment("welcome"); err == nil {
		s.follow(r, b, position, out)
	}
}

// follow sends updates until the browser is gone or does not read, the cluster is gone, or the time is over.
func (s *Server) follow(r *http.Request, b *board, position string, out *eventWriter) {
	ctx := r.Context()
	over := time.NewTimer(s.limits.stream)
	defer over.Stop()
	for {
		u, err := b.since(s.templates, position)
		if err != nil || u.gone {
			return
		}
		pause := s.limits.alive
		if len(u.fragments) > 0 {
			if err := out.fragments(u); err != nil {
				return
			}
			position, pause, u.next = u.position, s.limits.update, nil // what changes meanwhile is sent together
		}
		timer := time.NewTimer(pause)
		select {
		case <-u.next:
		case <-timer.C:
			if u.next != nil {
				err = out.comment("alive")
			}
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.done:
			err = http.ErrServerClosed
		case <-over.C:
			err = http.ErrHandlerTimeout
		}
		timer.Stop()
		if err != nil {
			return
		}
	}
}

// eventWriter writes server-sent events, each within a time.
type eventWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	timeout    time.Duration
	buffer     bytes.Buffer
}

// fragments sends an update. JSON has no line breaks, which would end the data of the event.
func (e *eventWriter) fragments(u update) error {
	e.buffer.Reset()
	fmt.Fprintf(&e.buffer, "event: fragments\nid: %s\ndata: ", u.position)
	encoder := json.NewEncoder(&e.buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(u.fragments); err != nil {
		return fmt.Errorf("encoding an update: %w", err)
	}
	e.buffer.WriteByte('\n')
	return e.flush()
}

// comment sends something that a browser ignores.
func (e *eventWriter) comment(text string) error {
	e.buffer.Reset()
	fmt.Fprintf(&e.buffer, ": %s\n\n", text)
	return e.flush()
}

func (e *eventWriter) flush() error {
	if err := e.controller.SetWriteDeadline(time.Now().Add(e.timeout)); err != nil {
		return fmt.Errorf("setting the timeout of an update: %w", err)
	}
	if _, err := e.w.Write(e.buffer.Bytes()); err != nil {
		return fmt.Errorf("writing an update: %w", err)
	}
	return e.controller.Flush()
}
