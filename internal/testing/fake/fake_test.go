// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// cluster is a fake with its clock and a client that may do everything.
type cluster struct {
	*fake.Slurm
	clock  *clock
	client *rest.Client
	url    string
}

var key = []byte("the-key-of-the-cluster")

func start(t *testing.T, release string) cluster {
	t.Helper()
	c := cluster{clock: &clock{now: noon}}
	c.Slurm = fake.New(fake.Options{Release: release, Key: key, Now: c.clock.Now, Completing: 10 * time.Second})
	server := httptest.NewServer(c.Slurm)
	c.url = server.URL
	t.Cleanup(server.Close)
	c.client = c.as(t, "slurm", key)
	return c
}

// as returns a client of another user, or with another key.
func (c cluster) as(t *testing.T, user string, key []byte) *rest.Client {
	t.Helper()
	issuer, err := token.NewSigned(key, user, 0)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.NewClient(c.url, issuer, rest.Options{Now: c.clock.Now, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// states lists the nodes over HTTP as "name=STATE+FLAG reason by user".
func (c cluster) states(t *testing.T) string {
	t.Helper()
	list, err := c.client.Nodes(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range list.Nodes {
		text := n.Name + "=" + strings.TrimSuffix(strings.Join(n.State, "+"), "+DYNAMIC_NORM")
		if n.Reason != "" {
			text += fmt.Sprintf("(%s by %s)", n.Reason, n.ReasonUser)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestNodesChangeState(t *testing.T) {
	tests := map[string]struct {
		nodes  string
		update rest.NodeUpdate
		admin  func(cluster)
		want   string
		err    error
	}{
		"a drain takes its reason and its user":          {"a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE", nil},
		"a drain may have no reason":                     {"a", rest.NodeUpdate{State: "DRAIN"}, nil, "a=IDLE+DRAIN b=IDLE", nil},
		"a second drain overwrites the reason":           {"a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, drained, "a=IDLE+DRAIN(r by slurm) b=IDLE", nil},
		"a second drain without reason keeps the reason": {"a", rest.NodeUpdate{State: "DRAIN"}, drained, "a=IDLE+DRAIN(disk by root) b=IDLE", nil},
		"an undrain clears the reason":                   {"a", rest.NodeUpdate{State: "UNDRAIN", Reason: "back"}, drained, "a=IDLE b=IDLE", nil},
		"an undrain of an idle node is nothing":          {"a", rest.NodeUpdate{State: "UNDRAIN"}, nil, "a=IDLE b=IDLE", nil},
		"a resume clears the reason":                     {"a", rest.NodeUpdate{State: "RESUME"}, drained, "a=IDLE b=IDLE", nil},
		"idle ends a drain":                              {"a", rest.NodeUpdate{State: "IDLE"}, drained, "a=IDLE b=IDLE", nil},
		"a node goes down with a reason":                 {"a", rest.NodeUpdate{State: "DOWN", Reason: "r"}, nil, "a=DOWN(r by slurm) b=IDLE", nil},
		"a hostlist changes all":                         {"[a-b]", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE b=IDLE", rest.Absent},
		"a list of names changes all":                    {"a,b", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE+DRAIN(r by slurm)", nil},
		"an unknown name is absent":                      {"x", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE b=IDLE", rest.Absent},
		"nodes before an unknown name are changed":       {"b,aa,a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE", rest.Absent},
		"a state that cannot be set is refused":          {"a", rest.NodeUpdate{State: "ALLOCATED"}, nil, "a=IDLE b=IDLE", rest.Refused},
		"a lost node is down and does not respond":       {"a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, lost, "a=DOWN+DRAIN+NOT_RESPONDING(r by slurm) b=IDLE", nil},
		"a lost node that registers again is idle":       {"b", rest.NodeUpdate{State: "DRAIN"}, func(c cluster) { lost(c); register(c) }, "a=IDLE b=IDLE+DRAIN", nil},
		"a drain outlives losing and registering":        {"b", rest.NodeUpdate{State: "DRAIN"}, func(c cluster) { drained(c); lost(c); register(c) }, "a=IDLE+DRAIN(disk : Not responding by slurm) b=IDLE+DRAIN", nil},
		"a comment does not touch state and reason":      {"a", rest.NodeUpdate{Comment: new(string)}, drained, "a=IDLE+DRAIN(disk by root) b=IDLE", nil},
	}
	// 24.11 keeps a reason until the next job starts.
	kept := map[string]string{
		"an undrain clears the reason":             "a=IDLE(back by slurm) b=IDLE",
		"a resume clears the reason":               "a=IDLE(disk by root) b=IDLE",
		"idle ends a drain":                        "a=IDLE(disk by root) b=IDLE",
		"a lost node that registers again is idle": "a=IDLE(Not responding by slurm) b=IDLE+DRAIN",
	}
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		for name, test := range tests {
			t.Run(release+" "+name, func(t *testing.T) {
				c := start(t, release)
				c.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"})
				if test.admin != nil {
					test.admin(c)
				}
				if err := c.client.UpdateNodes(t.Context(), test.nodes, test.update); !errors.Is(err, test.err) {
					t.Errorf("error is %v, want %v", err, test.err)
				}
				want := test.want
				if old := kept[name]; release == fake.Slurm2411 && old != "" {
					want = old
				}
				if got := c.states(t); got != want {
					t.Errorf("nodes are %s, want %s", got, want)
				}
			})
		}
	}
}

func drained(c cluster) { _ = c.Update("root", "a", "DRAIN", "disk") }

func lost(c cluster) { c.Lose("a") }

func register(c cluster) { c.Register(fake.Node{Name: "a"}) }

func TestEverythingIsCounted(t *testing.T) {
	c := start(t, fake.Slurm2605)
	c.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"})
	comment := "hello"
	err := errors.Join(
		c.client.UpdateNodes(t.Context(), "a,b", rest.NodeUpdate{State: "DRAIN", Reason: "r"}),
		c.client.UpdateNodes(t.Context(), "b", rest.NodeUpdate{Comment: &comment}),
		c.client.DeleteNodes(t.Context(), "a"), c.client.Reconfigure(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	got := c.Counters()
	if diff := cmp.Diff(map[string]int{"GET ping": 1, "POST nodes": 2, "DELETE node": 1, "GET reconfigure": 1}, got.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got.Sent < 2000 || got.Received < 50 {
		t.Errorf("sent %d and received %d bytes", got.Sent, got.Received)
	}
	want := []fake.Write{
		{Time: noon, User: "slurm", Verb: "update", Nodes: "a,b", State: "DRAIN", Reason: "r"},
		{Time: noon, User: "slurm", Verb: "update", Nodes: "b", Comment: &comment},
		{Time: noon, User: "slurm", Verb: "delete", Nodes: "a"},
		{Time: noon, User: "slurm", Verb: "reconfigure"},
	}
	if diff := cmp.Diff(want, c.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	c.ResetCounters()
	if got := c.Counters(); len(got.Calls) != 0 || len(c.Writes()) != 0 {
		t.Errorf("after a reset: %+v", got)
	}
}

func BenchmarkAnswer10000Nodes(b *testing.B) {
	s := fake.New(fake.Options{})
	for i := range 10000 {
		s.Register(fake.Node{Name: fmt.Sprintf("worker-%d", i), Features: []string{"h100", "zone-a"}, Gres: "gpu:8"})
	}
	for b.Loop() {
		request := httptest.NewRequest(http.MethodGet, "/slurm/v0.0.45/nodes/", nil)
		request.Header.Set("X-SLURM-USER-TOKEN", "x")
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, request)
		b.SetBytes(int64(recorder.Body.Len()))
	}
}
