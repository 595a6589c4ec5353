// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// patience is how long tests wait for what has to happen.
const patience = 2 * time.Minute

// event is a server-sent event.
type event struct {
	id        string
	fragments map[string]string
}

// subscriber is a browser without a picture.
type subscriber struct {
	t      *testing.T
	lines  *bufio.Scanner
	status int
}

// subscribe follows the demo cluster from a position on, until the test ends.
func subscribe(t *testing.T, url, position string, header http.Header) *subscriber {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ui/slurm/demo/events?since="+position, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<24)
	return &subscriber{t: t, lines: lines, status: answer.StatusCode}
}

// next waits for an event; ok is false when the stream has ended.
func (s *subscriber) next() (e event, ok bool) {
	s.t.Helper()
	for s.lines.Scan() {
		line := s.lines.Text()
		if id, is := strings.CutPrefix(line, "id: "); is {
			e.id = id
		}
		if data, is := strings.CutPrefix(line, "data: "); is {
			if err := json.Unmarshal([]byte(data), &e.fragments); err != nil {
				s.t.Fatal(err)
			}
			return e, true
		}
	}
	if err := s.lines.Err(); errors.Is(err, context.DeadlineExceeded) {
		s.t.Fatal("nothing was sent, and the stream did not end")
	}
	return e, false
}

// fragments returns the names of the fragments of the next event.
func (s *subscriber) fragments() []string {
	s.t.Helper()
	e, ok := s.next()
	if !ok {
		s.t.Fatal("the stream has ended")
	}
	return slices.Sorted(maps.Keys(e.fragments))
}

// awaited waits until a condition holds.
func awaited(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func (s *Server) streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// soon makes updates follow one another quickly.
func soon(s *Server) { s.limits.update = 10 * time.Millisecond }

func drainFirst(f *Facts) { f.Nodes[0].State = node.Parse([]string{"IDLE", "DRAIN"}) }

func TestOnlyWhatHasChangedIsSent(t *testing.T) {
	m := newMemory(example(200))
	s, url := serve(t, m, soon)
	stream := subscribe(t, url, "", nil)
	first, ok := stream.next()
	if !ok || len(first.fragments) != 1 || !strings.Contains(first.fragments["main"], "cpu-149") {
		t.Fatalf("who has no page gets %d fragments", len(first.fragments))
	}
	m.edit(drainFirst)
	s.Wake()
	if diff := cmp.Diff([]string{"legend", "set-0", "set-0-0"}, stream.fragments()); diff != "" {
		t.Errorf("after a change:\n%s", diff)
	}
}

func TestABrowserGoesOnWhereItWas(t *testing.T) {
	m := newMemory(example(200))
	s, url := serve(t, m, soon)
	first, _ := subscribe(t, url, "", nil).next()
	m.edit(drainFirst)
	s.Wake()
	for name, stream := range map[string]*subscriber{
		"with the version of its page":                            subscribe(t, url, first.id, nil),
		"with the version of the last event, which counts more":   subscribe(t, url, "of-its-page", http.Header{"Last-Event-Id": {first.id}}),
		"with the version of the last event and that of its page": subscribe(t, url, first.id, http.Header{"Last-Event-Id": {first.id}}),
	} {
		if diff := cmp.Diff([]string{"legend", "set-0", "set-0-0"}, stream.fragments()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"main"}, subscribe(t, url, "of-another-process", nil).fragments()); diff != "" {
		t.Errorf("with the version of another process:\n%s", diff)
	}
}

func TestWhatChangedBetweenThePageAndItsStreamIsSent(t *testing.T) {
	m := newMemory(example(200))
	s, url := serve(t, m, func(s *Server) { s.limits.age = time.Hour })
	answer := ask(s, "GET", "/ui/slurm/demo", nil)
	_ = answer.Body.Close()
	s.mu.Lock()
	b := s.boards[demo()]
	s.mu.Unlock()
	position := b.position()
	m.edit(drainFirst)
	s.Wake()
	awaited(t, "the server has seen that nobody looks", func() bool { return len(s.changed) == 0 })
	if diff := cmp.Diff([]string{"legend", "set-0", "set-0-0"}, subscribe(t, url, position, nil).fragments()); diff != "" {
		t.Error(diff)
	}
}

func TestChangesWithinAnIntervalAreSentTogether(t *testing.T) {
	const interval = 300 * time.Millisecond
	m := newMemory(example(200))
	s, url := serve(t, m, func(s *Server) { s.limits.update = interval })
	stream := subscribe(t, url, "", nil)
	if _, ok := stream.next(); !ok {
		t.Fatal("nothing is sent")
	}
	began := time.Now()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				m.edit(func(f *Facts) { f.Nodes[0].Reason = node.Reason{Text: fmt.Sprint(i)} })
				s.Wake()
			}
		}
	}()
	const updates = 3
	for range updates {
		if diff := cmp.Diff([]string{"set-0-0"}, stream.fragments()); diff != "" {
			t.Error(diff)
		}
	}
	if took := time.Since(began); took < (updates-1)*interval {
		t.Errorf("%d updates came within %s", updates, took)
	}
}

func TestStatesGetOlderWithoutAnEvent(t *testing.T) {
	m := newMemory(example(20))
	_, url := serve(t, m, func(s *Server) { s.limits.update, s.limits.age = 10*time.Millisecond, 20*time.Millisecond })
	stream := subscribe(t, url, "", nil)
	if _, ok := stream.next(); !ok {
		t.Fatal("nothing is sent")
	}
	m.edit(func(f *Facts) { f.Now = f.Now.Add(time.Minute) })
	e, ok := stream.next()
	if !ok || !strings.Contains(e.fragments["head"], "60 s old") {
		t.Errorf("a minute later the head is %q", e.fragments["head"])
	}
}

func TestAStreamEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(s *Server)
		end    func(m *memory, s *Server)
	}{
		{"when its cluster is gone", nil, func(m *memory, s *Server) {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.clusters, demo())
			s.Wake()
		}},
		{"after a time, so that the token is asked for again", func(s *Server) { s.limits.stream = 50 * time.Millisecond }, func(*memory, *Server) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory(example(20))
			s, url := serve(t, m, func(s *Server) {
				soon(s)
				if tt.change != nil {
					tt.change(s)
				}
			})
			stream := subscribe(t, url, "", nil)
			if _, ok := stream.next(); !ok {
				t.Fatal("nothing is sent")
			}
			tt.end(m, s)
			if e, ok := stream.next(); ok {
				t.Errorf("%d fragments are sent", len(e.fragments))
			}
			awaited(t, "the stream is counted no more", func() bool { return s.streams() == 0 })
		})
	}
}

func TestAllStreamsEndWithTheManager(t *testing.T) {
	caches := slurmcache.NewRegistry(slurmcache.Options{})
	defer caches.Close()
	s := New(newMemory(example(20)), caches)
	listener := newListener(t, s)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	var streams []*subscriber
	for range 3 {
		stream := subscribe(t, listener, "", nil)
		if _, ok := stream.next(); !ok {
			t.Fatal("nothing is sent")
		}
		streams = append(streams, stream)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil || s.streams() != 0 {
			t.Errorf("%d streams are left: %v", s.streams(), err)
		}
	case <-time.After(patience):
		t.Fatal("the server did not end")
	}
	for _, stream := range streams {
		if _, ok := stream.next(); ok {
			t.Error("a stream goes on")
		}
	}
	if late := subscribe(t, listener, "", nil); late.status != http.StatusServiceUnavailable {
		t.Errorf("who comes late gets %d", late.status)
	}
}

func TestThereAreNotTooManyStreams(t *testing.T) {
	s, url := serve(t, newMemory(example(20)), func(s *Server) { s.limits.streams = 2 })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 2 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ui/slurm/demo/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		answer, err := transport.RoundTrip(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", answer, err)
		}
		defer func() { _ = answer.Body.Close() }()
	}
	if third := subscribe(t, url, "", nil); third.status != http.StatusServiceUnavailable {
		t.Errorf("the third gets %d", third.status)
	}
	stop()
	awaited(t, "browsers that are gone are counted no more", func() bool { return s.streams() == 0 })
	if again := subscribe(t, url, "", nil); again.status != http.StatusOK {
		t.Errorf("the next one gets %d", again.status)
	}
}

func TestABrowserThatDoesNotReadIsDropped(t *testing.T) {
	s, _ := serve(t, newMemory(example(5000)), func(s *Server) { s.limits.write = 100 * time.Millisecond })
	listener := httptest.NewUnstartedServer(s)
	listener.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(4096); err != nil { // a page does not fit into it
			t.Error(err)
		}
		return ctx
	}
	listener.Start()
	t.Cleanup(listener.Close)
	var dialer net.Dialer
	connection, err := dialer.DialContext(t.Context(), "tcp", listener.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if err := connection.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(connection, "GET /ui/slurm/demo/events HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(connection, status); err != nil || string(status) != "HTTP/1.1 200" {
		t.Fatalf("%q, %v", status, err)
	}
	awaited(t, "it is dropped", func() bool { return s.streams() == 0 })
}

func TestAPageThatNobodyLooksAtIsForgotten(t *testing.T) {
	s, _ := serve(t, newMemory(example(20)), func(s *Server) {
		s.limits.update, s.limits.age, s.limits.unused = time.Millisecond, 5*time.Millisecond, 20*time.Millisecond
	})
	answer := ask(s, "GET", "/ui/slurm/demo", nil)
	_ = answer.Body.Close()
	awaited(t, "it is forgotten", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.boards) == 0
	})
}
