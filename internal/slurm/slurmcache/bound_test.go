// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// listed is an answer with so many entries.
func listed(kind, entry string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"last_update":{"set":true,"number":1},%q:[`, kind)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, entry, i)
	}
	b.WriteString("]}")
	return b.String()
}

func TestMoreThanIsAcceptedIsSuspect(t *testing.T) {
	nodes := listed("nodes", `{"name":"n%d"}`, rest.MaxNodes+1)
	jobs := listed("jobs", `{"job_id":%d,"job_state":["RUNNING"],"nodes":"n[1-131072]"}`, 9)
	for name, test := range map[string]struct{ path, body, want string }{
		"nodes":         {"/nodes", nodes, "the answer has more than 65536 nodes, which is the most that is accepted"},
		"nodes of jobs": {"/jobs", jobs, "the answer has more than 1048576 nodes of jobs, which is the most that is accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
				l.WantJobs("test", "worker-0")
				after(2 * time.Second)
				s.SetFault(func(r *http.Request) *fake.Fault {
					if r.Method == http.MethodGet && strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), test.path) {
						return &fake.Fault{Status: http.StatusOK, Body: test.body}
					}
					return nil
				})
				s.Submit(fake.Job{NodeList: []string{"worker-0"}, CPUs: 1})
				for range 2 { // it stays so
					after(5 * time.Second)
					if got := l.Snapshot(); got.Trust != Suspect || !strings.Contains(got.Why, test.want) || got.Len() != 3 {
						t.Fatalf("%s, %q, %d nodes", got.Trust, got.Why, got.Len())
					}
				}
				s.SetFault(nil)
				after(2 * time.Minute)
				if got := l.Snapshot(); got.Trust != Fresh {
					t.Errorf("once the answers are short again: %s, %q", got.Trust, got.Why)
				}
			})
		})
	}
}
