// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// errDead is the error of calls to or from a process that has ended.
var errDead = errors.New("connect: connection refused")

// call is one write of the operator.
type call struct {
	at      time.Duration // since the start of the world
	ordinal int           // among the operator's writes, from 1
	to      string        // "kubernetes", "slurm" or "jail"
	method  string
	path    string // "pods/w-0/status", "nodes"
	body    []byte
	code    int // status of the answer; 0: none
	outcome string
	process *process
	// applied is true if the server carried it out.
	applied bool
}

func (c call) label() string {
	text := fmt.Sprintf("%s %s %s", c.to, c.method, c.path)
	if c.to == "slurm" {
		update := c.update()
		text += fmt.Sprintf(" %s %s %s", strings.Join(update.Name, ","), strings.Join(update.State, ","), update.Reason)
	}
	return text
}

func (c call) String() string {
	return fmt.Sprintf("%7.1fs #%d %s -> %d %s", c.at.Seconds(), c.ordinal, c.label(), c.code, c.outcome)
}

// update is what a write to Slurm sets.
type update struct {
	Name   []string `json:"name"`
	State  []string `json:"state"`
	Reason string   `json:"reason"`
}

func (c call) update() update {
	var u update
	_ = json.Unmarshal(c.body, &u) // a DELETE has no body
	return u
}

// verdict is what becomes of a write.
type verdict struct {
	// refuse answers with this status instead of carrying it out.
	refuse int
	body   string
	// hang lets the client wait for an answer until it gives up, cut closes the connection at once.
	hang, cut bool
	// lose carries it out and loses the answer.
	lose bool
	// late carries it out so much later, unless the client has given up by then.
	late time.Duration
	// fail is what a call of the kernel returns instead of being carried out.
	fail error
	// then happens when it has been carried out.
	then func()
	// name is for the trace.
	name string
}

// tap records and disturbs what a process sends to one of its servers.
type tap struct {
	world   *world
	process *process
	to      string
	next    http.RoundTripper
}

// RoundTrip passes a request on, unless a fault is wanted.
func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.process.ctx.Err() != nil {
		return nil, errDead
	}
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(t.process.ctx, cancel)
	r = r.WithContext(ctx)
	if t.to == "kubernetes" && !strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") &&
		!strings.HasPrefix(r.URL.Path, "/api/v1/nodes") && !strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/") &&
		r.URL.Path != "/apis/events.k8s.io/v1/namespaces/default/events" { // which are those of Nodes
		t.world.fail("invariant 7, one namespace", "%s %s", r.Method, r.URL.Path)
	}
	if t.to == "kubernetes" && t.world.unreachable() {
		return nil, errRefused()
	}
	if t.process.frozen.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !t.writes(r) {
		response, err := t.read(r)
		if t.process.ctx.Err() != nil {
			return nil, errDead
		}
		return response, err
	}
	time.Sleep(latency)
	return t.write(r)
}

// errRefused returns the error of a client when nothing listens.
func errRefused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func (w *world) unreachable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusing
}

// read passes a question on. Of Slurm's lists of nodes it keeps the last whole one, which is the answer to every later
// question while Slurm shows an earlier moment.
func (t *tap) read(r *http.Request) (*http.Response, error) {
	if t.to != "slurm" || !listsNodes(r) {
		return t.next.RoundTrip(r)
	}
	w := t.world
	w.mu.Lock()
	shown, frozen := w.shown, w.frozen
	w.mu.Unlock()
	if frozen && shown != nil {
		return answer(r, http.StatusOK, string(shown)), nil
	}
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lying.IsZero() {
		w.shown = body
	}
	return response, nil
}

// latency is what a write takes. Without it two operators that disagree would for ever do so at the same instant.
const latency = 10 * time.Millisecond

// writes reports whether a request changes something that counts; events do not.
func (t *tap) writes(r *http.Request) bool {
	if t.to == "slurm" {
		return r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/reconfigure")
	}
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events")
}

func (t *tap) write(r *http.Request) (*http.Response, error) {
	c, verdict, err := t.announce(r)
	if err != nil {
		return nil, err
	}
	c.outcome = verdict.name
	switch {
	case verdict.cut:
		t.note(c)
		return nil, errRefused()
	case verdict.hang:
		t.note(c)
		<-r.Context().Done()
		return nil, r.Context().Err()
	case verdict.refuse != 0:
		c.code = verdict.refuse
		t.note(c)
		return answer(r, verdict.refuse, verdict.body), nil
	case verdict.late > 0:
		select {
		case <-time.After(verdict.late):
		case <-r.Context().Done():
			t.note(c)
			return nil, r.Context().Err()
		}
	}
	judged := t.world.judge(c)
	response, err := t.next.RoundTrip(r)
	if err == nil {
		c.code = response.StatusCode
		c.applied = c.code < 300
		if t.to == "slurm" && c.applied {
			c.applied = !slurmErrors(response)
		}
	}
	judged(c)
	t.note(c)
	if verdict.then != nil {
		verdict.then()
	}
	if err == nil && (verdict.lose || t.process.ctx.Err() != nil) {
		_ = response.Body.Close()
		return nil, errors.New("read: connection reset by peer")
	}
	return response, err
}

// announce counts a write and asks what shall become of it.
func (t *tap) announce(r *http.Request) (call, verdict, error) {
	c := call{process: t.process, to: t.to, method: r.Method, path: short(r.URL.Path), at: time.Since(t.world.start)}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return c, verdict{}, err
		}
		c.body = body
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if t.process.ctx.Err() != nil {
		return c, verdict{}, errDead
	}
	v := t.world.number(&c)
	return c, v, nil
}

// number gives a write its number and returns what is to become of it.
func (w *world) number(c *call) verdict {
	w.mu.Lock()
	w.writes++
	w.changed = time.Now()
	c.ordinal = w.writes
	inject := w.inject
	w.mu.Unlock()
	if inject == nil {
		return verdict{}
	}
	return inject(*c)
}

func (t *tap) note(c call) { t.world.note(c) }

func (w *world) note(c call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
}

// short returns a path without what all paths have.
func short(path string) string {
	if _, rest, ok := strings.Cut(path, "/namespaces/"+namespace+"/"); ok {
		return rest
	}
	parts := strings.SplitN(path, "/", 4) // /slurm/v0.0.45/nodes
	return parts[len(parts)-1]
}

func answer(r *http.Request, code int, body string) *http.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// slurmErrors reports whether an answer of slurmrestd has errors, and leaves it readable.
func slurmErrors(response *http.Response) bool {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	var answer struct {
		Errors []json.RawMessage `json:"errors"`
	}
	return err != nil || json.Unmarshal(body, &answer) != nil || len(answer.Errors) > 0
}
