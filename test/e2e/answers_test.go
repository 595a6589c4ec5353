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

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// compareAnswers asks slurmrestd and the fake Slurm the same and holds the fake to what the real one answers: the status,
// Slurm's error numbers, and for every field that the fake writes its name and type.
func (s *scene) compareAnswers(t *testing.T, restAPI, controller, node string) {
	t.Helper()
	var secret corev1.Secret
	if err := s.Get(t.Context(), s.name(controller+"-auth-jwt"), &secret); err != nil {
		t.Fatal(err)
	}
	issuer, err := token.NewSigned(secret.Data["jwt.key"], "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	signed, _, err := issuer.Token(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	address, release, err := s.Reach(t.Context(), s.name(restAPI+"-restapi"))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	compareWithFake(t, "http://"+address, signed, node)
}

func compareWithFake(t *testing.T, endpoint, signed, node string) {
	t.Helper()
	like := fake.New(fake.Options{})
	like.Register(fake.Node{Name: node})
	like.Submit(fake.Job{Nodes: 1, CPUs: 1, Duration: time.Millisecond, Limit: time.Hour})
	server := httptest.NewServer(like)
	defer server.Close()

	tomorrow := time.Now().Add(24 * time.Hour).Unix()
	reservation := fmt.Sprintf(`{"name":"e2e","start_time":{"set":true,"number":%d},"end_time":{"set":true,"number":%d},"node_list":[%q],"users":["root"],"flags":["MAINT"]}`,
		tomorrow, tomorrow+3600, node)
	for _, call := range []struct{ token, method, path, body string }{
		{signed, "GET", "ping/", ""},
		{signed, "GET", "nodes/", ""},
		{signed, "GET", fmt.Sprintf("nodes/?update_time=%d", tomorrow), ""},
		{signed, "GET", "node/" + node, ""},
		{signed, "GET", "node/nobody", ""},
		{signed, "GET", "jobs/", ""},
		{signed, "GET", fmt.Sprintf("jobs/?update_time=%d", tomorrow), ""},
		{signed, "GET", "jobs/state/", ""},
		{signed, "GET", "partitions/", ""},
		{signed, "GET", "diag/", ""},
		{signed, "GET", "conf", ""},
		{signed, "GET", "reservations/", ""},
		{signed, "POST", "nodes/", fmt.Sprintf(`{"name":[%q],"state":["UNDRAIN"]}`, node)},
		{signed, "POST", "nodes/", `{"name":["nobody"],"state":["DRAIN"],"reason":"r"}`},
		{signed, "POST", "nodes/", fmt.Sprintf(`{"name":[%q],"features_act":["nothing-like-that"]}`, node)},
		{signed, "DELETE", "node/nobody", ""},
		{signed, "DELETE", "node/nobody%2Cnoone", ""},
		{signed, "POST", "reservation", strings.Replace(reservation, "root", "", 1)},
		{signed, "POST", "reservation", reservation},
		{signed, "GET", "reservations/", ""},
		{signed, "DELETE", "reservation/e2e", ""},
		{signed, "DELETE", "reservation/e2e", ""},
		{signed, "GET", "no-such-thing/", ""},
		{"", "GET", "nodes/", ""},
	} {
		name := call.method + " " + call.path
		real, body := exchange(t, endpoint, call.token, call.method, call.path, call.body)
		played, imitation := exchange(t, server.URL, call.token, call.method, call.path, call.body)
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
}

// exchange makes one call and returns the status and the answer, decoded if it is JSON.
func exchange(t *testing.T, endpoint, signed, method, path, body string) (status int, answer any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, endpoint+"/slurm/v0.0.45/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if signed != "" {
		request.Header.Set("X-Slurm-User-Token", signed)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing follows from it
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
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

// describe notes the type of everything in a value by its path; the entries of a list count as one.
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

// alike says whether two types are the same, as far as can be seen.
func alike(a, b string) bool {
	return a == b || strings.HasSuffix(a, "list") && strings.HasSuffix(b, "list")
}
