// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

func (m *memory) askedFor() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// showsJobs reads events until one shows all this of jobs.
func showsJobs(t *testing.T, stream *subscriber, want ...string) {
	t.Helper()
	for {
		e, ok := stream.next()
		if !ok {
			t.Fatalf("nothing shows %q", want)
		}
		all, missing := e.fragments["jobs"], false
		if all == "" {
			all = e.fragments["main"]
		}
		for _, part := range want {
			missing = missing || !strings.Contains(all, part)
		}
		if !missing {
			return
		}
	}
}

func TestSlurmIsAskedForJobsWhileSomebodyFollows(t *testing.T) {
	m := newMemory(example(4))
	m.jobs = slurmcache.JobRecords{Taken: noon(), Jobs: []*rest.JobRecord{{ID: 7, User: "alice", Partition: "main", State: []string{"PENDING"}, Reason: "Resources"}}}
	s, url := serve(t, m, func(s *Server) {
		soon(s)
		s.limits.queue = 20 * time.Millisecond
	})
	for _, path := range []string{"/ui", "/ui/slurm/demo"} { // a page is no stream
		answer := ask(s, http.MethodGet, path, nil)
		_ = answer.Body.Close()
	}
	idle := time.NewTimer(5 * s.limits.queue)
	<-idle.C
	if n := m.askedFor(); n > 0 {
		t.Fatalf("Slurm was asked %d times before somebody followed", n)
	}
	showsJobs(t, subscribe(t, url, "", nil), "<td>7<td>alice<td>main", "Resources 1")
	m.mu.Lock()
	m.jobsErr = errors.New("no answer <today>")
	m.mu.Unlock()
	showsJobs(t, subscribe(t, url, "", nil), "<td>7<td>alice<td>main", "no answer &lt;today&gt;", "class=\"bad\"")
}

func TestNobodyIsAskedAfterTheLastBrowserHasGone(t *testing.T) {
	m := newMemory(example(4))
	s, url := serve(t, m, func(s *Server) {
		soon(s)
		s.limits.queue, s.limits.stream = 10*time.Millisecond, 100*time.Millisecond
	})
	stream := subscribe(t, url, "", nil)
	for _, ok := stream.next(); ok; _, ok = stream.next() {
	}
	awaited(t, "the stream is counted no more", func() bool { return s.streams() == 0 })
	asked := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.boards[demo()].asking }
	awaited(t, "what was asked is answered", func() bool { return !asked() })
	before := m.askedFor()
	idle := time.NewTimer(10 * s.limits.queue)
	<-idle.C
	if after := m.askedFor(); before == 0 || after != before {
		t.Errorf("Slurm was asked %d times, and %d times afterwards", before, after-before)
	}
}

func TestManyBrowsersAskOnce(t *testing.T) {
	m := newMemory(example(4))
	s, url := serve(t, m, func(s *Server) { s.limits.queue = time.Hour })
	for range 5 {
		if _, ok := subscribe(t, url, "", nil).next(); !ok {
			t.Fatal("nothing is sent")
		}
	}
	awaited(t, "Slurm has been asked", func() bool { return m.askedFor() > 0 && len(s.entered) == 0 })
	if n := m.askedFor(); n != 1 {
		t.Errorf("Slurm was asked %d times", n)
	}
}
