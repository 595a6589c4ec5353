// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

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
