// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// comparison asks slurmrestd and the fake Slurm the same and compares the answers.
type comparison struct {
	real, played string // endpoints
	// ours is a token of Slurm's own user. foreign is one of a user who may change nothing, stale one that has expired, and
	// forged one that is signed with another key.
	ours, foreign, stale, forged string
	// node is a worker, in both.
	node string
	like *fake.Slurm
}

// compareAnswers compares all that the operator asks, and what goes wrong with it, while a worker is idle and while it is busy.
func (s *scene) compareAnswers(t *testing.T, alice *user, restAPI, controller, node string) {
	t.Helper()
	var secret corev1.Secret
	if err := s.Get(t.Context(), s.name(controller+"-auth-jwt"), &secret); err != nil {
		t.Fatal(err)
	}
	key := secret.Data["jwt.key"]
	address, release, err := s.Reach(t.Context(), s.name(restAPI+"-restapi"))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c := &comparison{real: "http://" + address, node: node, like: fake.New(fake.Options{Key: key})}
	server := httptest.NewServer(c.like)
	defer server.Close()
	c.played = server.URL
	now := time.Now()
	c.ours, c.foreign = signs(t, key, "slurm", now), signs(t, key, "nobody", now)
	c.stale, c.forged = signs(t, key, "slurm", now.Add(-time.Hour)), signs(t, []byte("another key"), "slurm", now)

	c.like.Register(fake.Node{Name: node})
	c.like.Submit(fake.Job{Nodes: 1, CPUs: 1, Duration: time.Millisecond, Limit: time.Hour})
	c.idle(t)
	c.transitions(t)
	job := c.like.Submit(fake.Job{NodeList: []string{node}, CPUs: 1})
	number, end := alice.submitsBlocked(t, "--nodelist="+node)
	c.busy(t)
	end(t)
	alice.awaits(t, number, "COMPLETED")
	c.like.Finish(job)
}

func signs(t *testing.T, key []byte, user string, at time.Time) string {
	t.Helper()
	issuer, err := token.NewSigned(key, user, 0)
	if err != nil {
		t.Fatal(err)
	}
	signed, _, err := issuer.Token(at)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// asked is a call.
type asked struct{ token, method, path, body string }

// reservation returns a body that makes one of the node, for tomorrow.
func (c *comparison) reservation(users string) string {
	tomorrow := time.Now().Add(24 * time.Hour).Unix()
	return fmt.Sprintf(`{"name":"e2e","start_time":{"set":true,"number":%d},"end_time":{"set":true,"number":%d},"node_list":[%q],"users":[%q],"flags":["MAINT"]}`,
		tomorrow, tomorrow+3600, c.node, users)
}

func (c *comparison) idle(t *testing.T) {
	t.Helper()
	tomorrow := time.Now().Add(24 * time.Hour).Unix()
	for _, call := range []asked{
		{c.ours, "GET", "ping/", ""},
		{c.ours, "GET", "nodes/", ""},
		{c.ours, "GET", fmt.Sprintf("nodes/?update_time=%d", tomorrow), ""},
		{c.ours, "GET", "node/" + c.node, ""},
		{c.ours, "GET", "node/nobody", ""},
		{c.ours, "GET", "jobs/", ""},
		{c.ours, "GET", fmt.Sprintf("jobs/?update_time=%d", tomorrow), ""},
		{c.ours, "GET", "jobs/state/", ""},
		{c.ours, "GET", "partitions/", ""},
		{c.ours, "GET", "diag/", ""},
		{c.ours, "GET", "conf", ""},
		{c.ours, "GET", "reconfigure/", ""},
		{c.ours, "GET", "reservations/", ""},
		{c.ours, "POST", "nodes/", fmt.Sprintf(`{"name":[%q],"state":["UNDRAIN"]}`, c.node)},
		{c.ours, "POST", "nodes/", `{"name":["nobody"],"state":["DRAIN"],"reason":"r"}`},
		{c.ours, "POST", "nodes/", fmt.Sprintf(`{"name":[%q],"features_act":["nothing-like-that"]}`, c.node)},
		{c.ours, "POST", "nodes/", `{"name":`},
		{c.foreign, "POST", "nodes/", fmt.Sprintf(`{"name":[%q],"state":["DRAIN"],"reason":"r"}`, c.node)},
		{c.ours, "DELETE", "node/nobody", ""},
		{c.ours, "DELETE", "node/nobody%2Cnoone", ""},
		{c.foreign, "DELETE", "node/nobody", ""},
		{c.ours, "POST", "new/node/", `{"node_conf":"NodeName=e2e-new CPUs=1 State=EXTERNAL"}`},
		{c.ours, "DELETE", "node/e2e-new", ""},
		{c.ours, "POST", "reservation", c.reservation("")},
		{c.foreign, "POST", "reservation", c.reservation("root")},
		{c.ours, "POST", "reservation", c.reservation("root")},
		{c.ours, "GET", "reservations/", ""},
		{c.ours, "DELETE", "reservation/e2e", ""},
		{c.ours, "DELETE", "reservation/e2e", ""},
		{c.ours, "GET", "no-such-thing/", ""},
		{"", "GET", "nodes/", ""},
		{c.stale, "GET", "nodes/", ""},
		{c.forged, "GET", "nodes/", ""},
		{c.forged, "POST", "nodes/", fmt.Sprintf(`{"name":[%q],"state":["DRAIN"],"reason":"r"}`, c.node)},
	} {
		c.compare(t, call)
	}
}

// busy compares what is shown only when a job runs, and what is refused then.
func (c *comparison) busy(t *testing.T) {
	t.Helper()
	for _, call := range []asked{
		{c.ours, "GET", "nodes/", ""},
		{c.ours, "GET", "jobs/", ""},
		{c.ours, "GET", "jobs/state/", ""},
		{c.ours, "GET", "diag/", ""},
		{c.ours, "DELETE", "node/" + c.node, ""},
		{c.ours, "POST", "reservation", c.reservation("root")},
	} {
		c.compare(t, call)
	}
	c.compareState(t, c.node, "a job runs")
}

// transitions takes nodes through states, as the operator and administrators do, and compares what becomes of them. slurmctld returns a
// node that is DOWN to service when its slurmd answers (ReturnToService=2), and after an UNDRAIN or a reconfiguration it asks in a moment
// of its own: what is about DOWN is tried on a node that has no slurmd.
func (c *comparison) transitions(t *testing.T) {
	t.Helper()
	c.walks(t, c.node,
		`"state":["DRAIN"],"reason":"e2e: first"`,
		`"state":["DRAIN"],"reason":"e2e: second"`,
		`"reason":"e2e: third"`,
		`"state":["UNDRAIN"]`,
		`"state":["UNDRAIN"]`,
		`"state":["DRAIN"],"reason":"e2e: fourth"`,
		`"state":["RESUME"]`,
	)
	const still = "e2e-still"
	c.compare(t, asked{c.ours, "POST", "new/node/", `{"node_conf":"NodeName=` + still + ` CPUs=1 State=EXTERNAL"}`})
	c.walks(t, still,
		`"state":["DOWN"],"reason":"e2e: down"`,
		`"state":["DRAIN"],"reason":"e2e: down and drained"`,
		`"state":["UNDRAIN"]`,
		`"state":["IDLE"]`,
		`"state":["DRAIN"],"reason":"e2e: fifth"`,
		`"state":["DOWN"],"reason":"e2e: drained and down"`,
		`"state":["RESUME"]`,
	)
	c.compare(t, asked{c.ours, "DELETE", "node/" + still, ""})
}

// walks makes changes to a node, one after the other, and compares its state after each.
func (c *comparison) walks(t *testing.T, node string, changes ...string) {
	t.Helper()
	c.compareState(t, node, "it is there")
	for _, change := range changes {
		c.compare(t, asked{c.ours, "POST", "nodes/", fmt.Sprintf(`{"name":[%q],%s}`, node, change)})
		c.compareState(t, node, change)
	}
}

// compareState compares what both answer about a node. After an UNDRAIN, slurmctld takes a node for one that does not respond until
// it has pinged it; the fake does not.
func (c *comparison) compareState(t *testing.T, node, after string) {
	t.Helper()
	state := func(endpoint string) string {
		_, body := exchange(t, endpoint, asked{c.ours, "GET", "nodes/", ""})
		object, _ := body.(map[string]any)
		list, _ := object["nodes"].([]any)
		for _, entry := range list {
			if n, ok := entry.(map[string]any); ok && n["name"] == node {
				words, _ := n["state"].([]any)
				words = slices.DeleteFunc(words, func(word any) bool { return word == "NOT_RESPONDING" })
				return fmt.Sprintf("%v, reason %q of %q, reservation %q", words, n["reason"], n["reason_set_by_user"], n["reservation"])
			}
		}
		return "unknown"
	}
	if want, got := state(c.real), state(c.played); want != got {
		t.Errorf("after %s the real node %s is %s, the fake's %s", after, node, want, got)
	}
}

// compare makes a call to both, and compares the status, Slurm's error numbers, and for every field that the fake writes its
// name and type.
func (c *comparison) compare(t *testing.T, call asked) {
	t.Helper()
	name := call.method + " " + call.path + " " + call.body
	real, body := exchange(t, c.real, call)
	played, imitation := exchange(t, c.played, call)
	if real != played {
		t.Errorf("%s: the real status is %d, the fake's %d: %.300v", name, real, played, body)
	}
	if want, got := errorNumbers(body), errorNumbers(imitation); !slices.Equal(want, got) {
		t.Errorf("%s: the real errors are %v, the fake's %v", name, want, got)
	}
	shape := map[string]string{}
	describe(shape, "", body)
	written := map[string]string{}
	describe(written, "", imitation)
	for _, path := range slices.Sorted(maps.Keys(written)) {
		if parent := path[:max(0, strings.LastIndex(path, "."))]; shape[parent] == "empty list" || shape[parent] == "" && parent != "" {
			continue // nothing real to compare with, or told already
		}
		if want, ok := shape[path]; !ok || !alike(want, written[path]) {
			t.Errorf("%s: the fake writes %s as %s, the real one as %q", name, path, written[path], want)
		}
	}
}

// exchange makes one call and returns the status and the answer, decoded if it is JSON.
func exchange(t *testing.T, endpoint string, call asked) (status int, answer any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), call.method, endpoint+"/slurm/v0.0.45/"+call.path, strings.NewReader(call.body))
	if err != nil {
		t.Fatal(err)
	}
	if call.token != "" {
		request.Header.Set("X-Slurm-User-Token", call.token)
	}
	if call.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", call.method, call.path, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing follows from it
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", call.method, call.path, err)
	}
	if json.Unmarshal(content, &answer) != nil {
		return response.StatusCode, string(content)
	}
	return response.StatusCode, answer
}

func errorNumbers(answer any) (numbers []float64) {
	object, _ := answer.(map[string]any)
	list, _ := object["errors"].([]any)
	for _, entry := range list {
		if e, ok := entry.(map[string]any); ok {
			number, _ := e["error_number"].(float64)
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// describe records the type of everything in a value by its path; the entries of a list count as one.
func describe(to map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		to[path] = "object"
		for key, member := range v {
			describe(to, path+"."+key, member)
		}
	case []any:
		to[path] = "empty list"
		for _, entry := range v {
			to[path] = "list"
			describe(to, path+"[]", entry)
		}
	default:
		to[path] = fmt.Sprintf("%T", value)
	}
}

// alike reports whether two types are the same, as far as can be seen.
func alike(a, b string) bool {
	return a == b || strings.HasSuffix(a, "list") && strings.HasSuffix(b, "list")
}
