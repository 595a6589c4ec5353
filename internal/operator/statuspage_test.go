// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/testing/port"
)

// reviewer is an API server that knows the owner of a token: that of alice, who may see everything, or of bob, who may not.
type reviewer struct {
	mu    sync.Mutex
	asked []authorizationv1.NonResourceAttributes
}

func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var answer any
	switch {
	case strings.HasSuffix(request.URL.Path, "/tokenreviews"):
		var review authenticationv1.TokenReview
		err = json.Unmarshal(body, &review)
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: review.Spec.Token == "alice" || review.Spec.Token == "bob", User: authenticationv1.UserInfo{Username: review.Spec.Token}}
		answer = review
	case strings.HasSuffix(request.URL.Path, "/subjectaccessreviews"):
		var review authorizationv1.SubjectAccessReview
		err = json.Unmarshal(body, &review)
		review.Status.Allowed = review.Spec.User == "alice"
		r.mu.Lock()
		r.asked = append(r.asked, *review.Spec.NonResourceAttributes)
		r.mu.Unlock()
		answer = review
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(answer)
}

// servePage runs a manager with nothing but the status page, and returns its address.
func servePage(t *testing.T, reviews *httptest.Server) string {
	t.Helper()
	address, listen := port.Hold(t)
	sim := kubesim.New(Scheme())
	mgr, err := ctrl.NewManager(sim.Config(nil), ctrl.Options{
		Scheme:         Scheme(),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return sim.Mapper(), nil },
		Metrics: metricsserver.Options{BindAddress: address, ListenConfig: listen, FilterProvider: func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
			return filters.WithAuthenticationAndAuthorization(&rest.Config{Host: reviews.URL}, reviews.Client())
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	user, err := client.New(sim.Config(nil), client.Options{Scheme: Scheme(), Mapper: sim.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	if err := user.Create(t.Context(), manifest.Parse[slinkyv1beta1.Controller](t, "metadata: {name: demo, namespace: slurm}")); err != nil {
		t.Fatal(err)
	}
	caches := slurmcache.NewRegistry(slurmcache.Options{})
	ctx, stop := context.WithCancel(context.Background())
	if err := addStatusPage(ctx, mgr, caches, true); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
		caches.Close()
	})
	return address
}

func TestTheStatusPageIsForThoseWhoMayGetIt(t *testing.T) {
	review := &reviewer{}
	reviews := httptest.NewServer(review)
	defer reviews.Close()
	address := servePage(t, reviews)
	get := func(path, token string) (status int, body string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	deadline, tick := time.After(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for status, body := get("/ui", "alice"); status != http.StatusOK || !strings.Contains(body, "slurm/demo"); status, body = get("/ui", "alice") {
		select {
		case <-deadline:
			t.Fatalf("%d: %s", status, body)
		case <-tick.C:
		}
	}
	for _, tt := range []struct {
		name, path, token string
		status            int
		contains          string
	}{
		{"somebody who may sees a cluster", "/ui/slurm/demo", "alice", http.StatusOK, "slurm/demo"},
		{"somebody who may sees the script of the page", "/ui/script.js", "alice", http.StatusOK, "EventSource"},
		{"somebody who may not is refused", "/ui/slurm/demo", "bob", http.StatusForbidden, "denied"},
		{"somebody who may not is refused the list", "/ui", "bob", http.StatusForbidden, "denied"},
		{"somebody who may not is refused what changes", "/ui/slurm/demo/events", "bob", http.StatusForbidden, "denied"},
		{"nobody knows whose token it is", "/ui/slurm/demo", "mallory", http.StatusInternalServerError, "Authentication failed"},
		{"there is no token", "/ui", "", http.StatusUnauthorized, "Unauthorized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status, body := get(tt.path, tt.token); status != tt.status || !strings.Contains(body, tt.contains) {
				t.Errorf("%d: %s", status, body)
			}
		})
	}
	review.mu.Lock()
	defer review.mu.Unlock()
	for _, asked := range review.asked {
		if asked.Verb != "get" || asked.Path != "/ui" && !strings.HasPrefix(asked.Path, "/ui/") {
			t.Errorf("it was asked whether somebody may %s %s", asked.Verb, asked.Path)
		}
	}
}
