// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
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
		"a drain takes its reason and its user":     {"a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE", nil},
		"a drain may have no reason":                {"a", rest.NodeUpdate{State: "DRAIN"}, nil, "a=IDLE+DRAIN b=IDLE", nil},
		"a second drain overwrites the reason":      {"a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, drained, "a=IDLE+DRAIN(r by slurm) b=IDLE", nil},
		"a second drain without reason keeps it":    {"a", rest.NodeUpdate{State: "DRAIN"}, drained, "a=IDLE+DRAIN(disk by root) b=IDLE", nil},
		"an undrain clears the reason":              {"a", rest.NodeUpdate{State: "UNDRAIN", Reason: "back"}, drained, "a=IDLE b=IDLE", nil},
		"an undrain of an idle node is nothing":     {"a", rest.NodeUpdate{State: "UNDRAIN"}, nil, "a=IDLE b=IDLE", nil},
		"a resume clears the reason":                {"a", rest.NodeUpdate{State: "RESUME"}, drained, "a=IDLE b=IDLE", nil},
		"idle ends a drain":                         {"a", rest.NodeUpdate{State: "IDLE"}, drained, "a=IDLE b=IDLE", nil},
		"a node goes down with a reason":            {"a", rest.NodeUpdate{State: "DOWN", Reason: "r"}, nil, "a=DOWN(r by slurm) b=IDLE", nil},
		"a hostlist changes all":                    {"[a-b]", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE b=IDLE", rest.Absent},
		"a list of names changes all":               {"a,b", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE+DRAIN(r by slurm)", nil},
		"an unknown name is absent":                 {"x", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE b=IDLE", rest.Absent},
		"nodes before an unknown name are changed":  {"b,aa,a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE", rest.Absent},
		"a state that cannot be set is refused":     {"a", rest.NodeUpdate{State: "ALLOCATED"}, nil, "a=IDLE b=IDLE", rest.Refused},
		"a lost node is down and does not respond":  {"a", rest.NodeUpdate{State: "DRAIN", Reason: "r"}, lost, "a=DOWN+DRAIN+NOT_RESPONDING(r by slurm) b=IDLE", nil},
		"a lost node that registers again is idle":  {"b", rest.NodeUpdate{State: "DRAIN"}, func(c cluster) { lost(c); register(c) }, "a=IDLE b=IDLE+DRAIN", nil},
		"a drain outlives losing and registering":   {"b", rest.NodeUpdate{State: "DRAIN"}, func(c cluster) { drained(c); lost(c); register(c) }, "a=IDLE+DRAIN(disk : Not responding by slurm) b=IDLE+DRAIN", nil},
		"a comment does not touch state and reason": {"a", rest.NodeUpdate{Comment: new(string)}, drained, "a=IDLE+DRAIN(disk by root) b=IDLE", nil},
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

func drained(c cluster)  { _ = c.Update("root", "a", "DRAIN", "disk") }
func lost(c cluster)     { c.Lose("a") }
func register(c cluster) { c.Register(fake.Node{Name: "a"}) }

func TestJobsOccupyNodesInTheirTime(t *testing.T) {
	c := start(t, fake.Slurm2605)
	c.Register(fake.Node{Name: "n1", CPUs: 4}, fake.Node{Name: "n2", CPUs: 4}, fake.Node{Name: "n3", CPUs: 4})
	c.Submit(fake.Job{Nodes: 2, Duration: time.Minute})                              // 1
	c.Submit(fake.Job{NodeList: []string{"n3"}, CPUs: 1, Limit: 2 * time.Minute})    // 2
	waits := c.Submit(fake.Job{Nodes: 2, Duration: time.Minute, User: "bob"})        // 3
	c.Submit(fake.Job{Nodes: 1, CPUs: 3, Duration: time.Hour, Limit: 2 * time.Hour}) // 4
	look := func(when string, nodes string, jobs string) {
		t.Helper()
		if got := c.states(t); got != nodes {
			t.Errorf("%s: nodes are %s, want %s", when, got, nodes)
		}
		list, err := c.client.Jobs(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range list.Jobs {
			end := "never"
			if !j.Unlimited {
				end = j.End.Sub(noon).String()
			}
			got = append(got, fmt.Sprintf("%d=%s on %s from %s to %s", j.ID, strings.Join(j.State, "+"), j.Nodes, j.Start.Sub(noon), end))
		}
		if strings.Join(got, ", ") != jobs {
			t.Errorf("%s: jobs are %s, want %s", when, strings.Join(got, ", "), jobs)
		}
	}
	look("at first", "n1=ALLOCATED n2=ALLOCATED n3=ALLOCATED",
		"1=RUNNING on n[1-2] from 0s to never, 2=RUNNING on n3 from 0s to 2m0s, 4=RUNNING on n3 from 0s to 2h0m0s")
	c.clock.Step(time.Minute)
	look("when job 1 ended", "n1=IDLE+COMPLETING n2=IDLE+COMPLETING n3=ALLOCATED",
		"1=COMPLETED+COMPLETING on n[1-2] from 0s to never, 2=RUNNING on n3 from 0s to 2m0s, 4=RUNNING on n3 from 0s to 2h0m0s")
	if err := c.client.DeleteNodes(t.Context(), "n1"); !errors.Is(err, rest.Refused) {
		t.Errorf("deleting a completing node: %v", err)
	}
	c.clock.Step(10 * time.Second)
	look("when it completed", "n1=ALLOCATED n2=ALLOCATED n3=ALLOCATED",
		"2=RUNNING on n3 from 0s to 2m0s, 3=RUNNING on n[1-2] from 1m10s to never, 4=RUNNING on n3 from 0s to 2h0m0s")
	c.clock.Step(50 * time.Second)
	look("when job 2 timed out", "n1=ALLOCATED n2=ALLOCATED n3=MIXED+COMPLETING",
		"2=TIMEOUT+COMPLETING on n3 from 0s to 2m0s, 3=RUNNING on n[1-2] from 1m10s to never, 4=RUNNING on n3 from 0s to 2h0m0s")
	if err := c.client.UpdateNodes(t.Context(), "n2", rest.NodeUpdate{State: "DRAIN", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	c.Lose("n1")
	if status, _ := c.Job(waits); status.Restarts != 1 || status.State[0] != "PENDING" {
		t.Errorf("job of a lost node is %+v", status)
	}
	c.clock.Step(24 * time.Hour)
	look("a day later", "n1=DOWN+NOT_RESPONDING(Not responding by slurm) n2=IDLE+DRAIN(r by slurm) n3=IDLE", "")
	c.Cancel(waits)
	if status, _ := c.Job(waits); status.State[0] != "CANCELLED" {
		t.Errorf("cancelled job is %+v", status)
	}
}

func TestUnchangedIsToldPerSecond(t *testing.T) {
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		t.Run(release, func(t *testing.T) {
			c := start(t, release)
			c.Register(fake.Node{Name: "a"})
			ask := func(since time.Time) rest.NodeList {
				t.Helper()
				list, err := c.client.Nodes(t.Context(), since)
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
			first := ask(time.Time{})
			if again := ask(first.Updated); again.Unchanged {
				t.Error("a change within the second of the answer is missed")
			}
			c.clock.Step(time.Second)
			second := ask(first.Updated)
			if second.Unchanged {
				t.Error("a change within the second of the answer is missed, a second later")
			}
			if again := ask(second.Updated); !again.Unchanged {
				t.Error("nothing changed, but a list came")
			}
			jobs, err := c.client.Jobs(t.Context(), second.Updated)
			if err != nil || !jobs.Unchanged {
				t.Errorf("no job changed, but %+v, %v", jobs, err)
			}
			c.Submit(fake.Job{Nodes: 1})
			if again := ask(second.Updated); again.Unchanged {
				t.Error("a job started, but nothing changed")
			}
			if jobs, err := c.client.Jobs(t.Context(), second.Updated); err != nil || len(jobs.Jobs) != 1 {
				t.Errorf("a job started, but %+v, %v", jobs, err)
			}
			if counters := c.Counters(); counters.Unchanged != 1 {
				t.Errorf("counted %d answers 304", counters.Unchanged)
			}
		})
	}
}

// TestOldReleasesRefuseSomeConditions plays what was measured with 24.11.5.
func TestOldReleasesRefuseSomeConditions(t *testing.T) {
	c := start(t, fake.Slurm2411)
	c.Register(fake.Node{Name: "a"})
	c.clock.Step(time.Minute)
	ask := func(version string) (status int) {
		request := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/slurm/%s/nodes/?update_time=%d", version, noon.Add(time.Second).Unix()), nil)
		issuer, err := token.NewSigned(key, "slurm", 0)
		if err != nil {
			t.Fatal(err)
		}
		secret, _, err := issuer.Token(c.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-SLURM-USER-TOKEN", secret)
		recorder := httptest.NewRecorder()
		c.ServeHTTP(recorder, request)
		return recorder.Code
	}
	if got := [2]int{ask("v0.0.41"), ask("v0.0.42")}; got != [2]int{500, 304} {
		t.Errorf("without a change it answers %v", got)
	}
	c.Register(fake.Node{Name: "b"})
	if got := [2]int{ask("v0.0.41"), ask("v0.0.42")}; got != [2]int{500, 500} {
		t.Errorf("after a change it answers %v", got)
	}
}

func TestTokensAreChecked(t *testing.T) {
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		t.Run(release, func(t *testing.T) {
			c := start(t, release)
			c.Register(fake.Node{Name: "a"})
			status := func(path, token string) (int, string) {
				t.Helper()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if token != "" {
					request.Header.Set("X-SLURM-USER-TOKEN", token)
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close() //nolint:errcheck // a test
				body, _ := io.ReadAll(response.Body)
				http.DefaultClient.CloseIdleConnections()
				return response.StatusCode, string(body)
			}
			if code, body := status("/slurm/v0.0.42/nodes/", ""); code != 401 || body != "Authentication failure" {
				t.Errorf("without token: %d %s", code, body)
			}
			if code, _ := status("/slurm/v0.0.1/nodes/", ""); code != 401 {
				t.Errorf("without token, unknown version: %d", code)
			}
			if code, _ := status("/slurm/v0.0.1/nodes/", "a.b.c"); code != 404 {
				t.Errorf("bad token, unknown version: %d", code)
			}
			if code, body := status("/slurm/v0.0.42/nodes/", "a.b.c"); code != 511 || !strings.Contains(body, `"error_number": 1007`) {
				t.Errorf("bad token: %d %s", code, body)
			}
			if code, body := status("/slurm/v0.0.42/ping/", "a.b.c"); code != 200 || !strings.Contains(body, `"responding": false`) {
				t.Errorf("bad token, ping: %d %s", code, body)
			}
			other := c.as(t, "slurm", []byte("another key"))
			if _, err := other.Nodes(t.Context(), time.Time{}); !errors.Is(err, rest.Unauthorized) {
				t.Errorf("another key: %v", err)
			}
			alice := c.as(t, "alice", key)
			if _, err := alice.Nodes(t.Context(), time.Time{}); err != nil {
				t.Errorf("alice reads: %v", err)
			}
			for _, err := range []error{
				alice.UpdateNodes(t.Context(), "a", rest.NodeUpdate{State: "DRAIN"}),
				alice.DeleteNodes(t.Context(), "a"), alice.Reconfigure(t.Context()),
			} {
				var e *rest.Error
				if !errors.As(err, &e) || e.Kind != rest.Refused || e.Code != rest.CodeInvalidUser {
					t.Errorf("alice writes: %v", err)
				}
			}
			c.SetKey([]byte("another key"))
			if _, err := c.client.Nodes(t.Context(), time.Time{}); !errors.Is(err, rest.Unauthorized) {
				t.Errorf("after a rotation: %v", err)
			}
			if _, err := other.Nodes(t.Context(), time.Time{}); err != nil {
				t.Errorf("the new key, after a rotation: %v", err)
			}
		})
	}
}

func TestVersionsFollowTheRelease(t *testing.T) {
	for release, want := range map[string]string{fake.Slurm2411: "v0.0.42", fake.Slurm2605: "v0.0.45"} {
		if got, err := start(t, release).client.Version(t.Context()); got != want || err != nil {
			t.Errorf("%s speaks %s, %v; want %s", release, got, err, want)
		}
	}
}

func TestUnknownNodeIsAnErrorOfNumberZero(t *testing.T) {
	c := start(t, fake.Slurm2605)
	issuer, err := token.NewSigned(key, "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err := issuer.Token(noon)
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "/slurm/v0.0.45/node/nope", nil)
	request.Header.Set("X-SLURM-USER-TOKEN", secret)
	recorder := httptest.NewRecorder()
	c.ServeHTTP(recorder, request)
	var got struct {
		Errors []struct {
			Number int `json:"error_number"`
		}
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if recorder.Code != 200 || len(got.Errors) != 1 || got.Errors[0].Number != 0 {
		t.Errorf("answer is %d %s", recorder.Code, recorder.Body)
	}
}

func TestSlurmctldStopsAndStarts(t *testing.T) {
	for _, release := range []string{fake.Slurm2411, fake.Slurm2605} {
		t.Run(release, func(t *testing.T) {
			c := start(t, release)
			c.Register(fake.Node{Name: "a"})
			job := c.Submit(fake.Job{Nodes: 1, Duration: time.Minute})
			c.Stop()
			c.clock.Step(30 * time.Second)
			pings, err := c.client.Ping(t.Context())
			if err != nil || len(pings) != 1 || pings[0].Responding {
				t.Errorf("ping while down: %+v, %v", pings, err)
			}
			var e *rest.Error
			if _, err := c.client.Nodes(t.Context(), time.Time{}); !errors.As(err, &e) || e.Kind != rest.Unavailable || e.Code != 1800 {
				t.Errorf("nodes while down: %v", err)
			}
			if err := c.client.UpdateNodes(t.Context(), "a", rest.NodeUpdate{State: "DRAIN"}); !errors.Is(err, rest.Unavailable) {
				t.Errorf("update while down: %v", err)
			}
			c.Start(true)
			if got := c.states(t); got != "a=ALLOCATED" {
				t.Errorf("with its state: %s", got)
			}
			if status, _ := c.Job(job); status.State[0] != "RUNNING" {
				t.Errorf("job with state: %+v", status)
			}
			c.Stop()
			c.Start(false)
			if got := c.states(t); got != "" {
				t.Errorf("without its state: %s", got)
			}
			c.Register(fake.Node{Name: "a"})
			if got := c.states(t); got != "a=IDLE" {
				t.Errorf("registered again: %s", got)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	drain := rest.NodeUpdate{State: "DRAIN", Reason: "r"}
	tests := map[string]struct {
		fault fake.Fault
		read  error
		count int
		write error
		after string
	}{
		"none":                        {fake.Fault{}, nil, 2, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"500 without words":           {fake.Fault{Status: 500, Body: "oops"}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE b=IDLE"},
		"500 after it was applied":    {fake.Fault{Status: 500, Apply: true}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"a reply that is lost":        {fake.Fault{Cut: true, Apply: true}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"a request that is lost":      {fake.Fault{Cut: true}, rest.Unavailable, 0, rest.Unavailable, "a=IDLE b=IDLE"},
		"an error with 200":           {fake.Fault{Error: &fake.Error{Number: 9, Text: "x"}}, rest.Refused, 0, rest.Refused, "a=IDLE b=IDLE"},
		"an empty list with 200":      {fake.Fault{KeepNode: func(string) bool { return false }}, nil, 0, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"a partial list with 200":     {fake.Fault{KeepNode: func(n string) bool { return n == "b" }}, nil, 1, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
		"latency beyond the time-out": {fake.Fault{Latency: time.Hour}, context.DeadlineExceeded, 0, context.DeadlineExceeded, "a=IDLE b=IDLE"},
		"silence":                     {fake.Fault{Hold: make(chan struct{})}, context.DeadlineExceeded, 0, context.DeadlineExceeded, "a=IDLE b=IDLE"},
		"some latency":                {fake.Fault{Latency: time.Millisecond}, nil, 2, nil, "a=IDLE+DRAIN(r by slurm) b=IDLE"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t, fake.Slurm2605)
			c.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"})
			if _, err := c.client.Version(t.Context()); err != nil {
				t.Fatal(err)
			}
			patience := time.Minute
			if errors.Is(test.read, context.DeadlineExceeded) {
				patience = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c.SetFault(func(*http.Request) *fake.Fault { return &test.fault })
			list, err := c.client.Nodes(ctx, time.Time{})
			if !errors.Is(err, test.read) || len(list.Nodes) != test.count {
				t.Errorf("reading: %d nodes, %v; want %d, %v", len(list.Nodes), err, test.count, test.read)
			}
			if err := c.client.UpdateNodes(ctx, "a", drain); !errors.Is(err, test.write) {
				t.Errorf("writing: %v, want %v", err, test.write)
			}
			c.SetFault(nil)
			if got := c.states(t); got != test.after {
				t.Errorf("afterwards %s, want %s", got, test.after)
			}
		})
	}
}

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
