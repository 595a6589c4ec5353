// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/tlsserver"
)

// aKubelet serves HTTPS on this machine. It returns its port and a file with the authority of its certificate.
func aKubelet(t *testing.T, serve http.HandlerFunc) (port int, caFile string) {
	t.Helper()
	_, port, caFile = tlsserver.Serve(t, serve)
	return port, caFile
}

func TestAKubeletIsAsked(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		edit   func(o *KubeletOptions)
		refuse string
	}{
		"the kubelet answers the operator": {serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/stats/summary" || r.Header.Get("Authorization") != "Bearer of-the-operator" || !r.Close {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			_, _ = w.Write([]byte(`{"pods": [{"podRef": {"uid": "u1"}, "ephemeral-storage": {"usedBytes": 70}}]}`))
		}},
		"the operator lacks the right":             {serve: answer(http.StatusForbidden, "Forbidden (user=coxswain)"), refuse: "nodes/stats"},
		"the kubelet does not know the operator":   {serve: answer(http.StatusUnauthorized, ""), refuse: "nodes/stats"},
		"the kubelet is ill":                       {serve: answer(http.StatusInternalServerError, "secret"), refuse: "it answers 500"},
		"the kubelet answers something else":       {serve: answer(http.StatusOK, "ok"), refuse: "reading the summary"},
		"the kubelet is slow":                      {serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, edit: func(o *KubeletOptions) { o.RequestTimeout = 50 * time.Millisecond }, refuse: "asking"},
		"the kubelet's certificate is not trusted": {serve: answer(http.StatusOK, "{}"), edit: func(o *KubeletOptions) { o.CAFile = "" }, refuse: "certificate"},
		"any certificate is taken where that is asked for": {
			serve: answer(http.StatusOK, `{"pods": [{"podRef": {"uid": "u1"}, "ephemeral-storage": {"usedBytes": 70}}]}`),
			edit:  func(o *KubeletOptions) { o.CAFile, o.InsecureSkipTLSVerify = "", true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			port, caFile := aKubelet(t, c.serve)
			o := KubeletOptions{Port: port, CAFile: caFile, RequestTimeout: 10 * time.Second}
			if c.edit != nil {
				c.edit(&o)
			}
			k, err := newKubelets(&rest.Config{Host: "https://api.example.com", BearerToken: "of-the-operator", TLSClientConfig: rest.TLSClientConfig{ServerName: "api.example.com"}}, o, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			used, err := k.use(t.Context(), "127.0.0.1")
			if c.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), c.refuse) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || used["u1"] != 70 {
				t.Errorf("%v, %v", used, err)
			}
		})
	}
}

func TestTheTokenFollowsNoRedirect(t *testing.T) {
	var asked atomic.Int32
	elsewhere, _ := aKubelet(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	port, _ := aKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:"+strconv.Itoa(elsewhere)+"/", http.StatusFound)
	})
	k, err := newKubelets(&rest.Config{BearerToken: "of-the-operator"}, KubeletOptions{Port: port, InsecureSkipTLSVerify: true, RequestTimeout: 10 * time.Second}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(t.Context(), "127.0.0.1"); err == nil || !strings.Contains(err.Error(), "it answers 302") || asked.Load() != 0 {
		t.Errorf("%v, and the other place was asked %d times", err, asked.Load())
	}
}

// accounts gives out tokens of ServiceAccounts, as an API server does.
type accounts struct {
	client.SubResourceClient
	asked []string
	err   error
}

func (a *accounts) SubResource(name string) client.SubResourceClient {
	a.asked = append(a.asked, name)
	return a
}

func (a *accounts) Create(_ context.Context, of, request client.Object, _ ...client.SubResourceCreateOption) error {
	asked := request.(*authenticationv1.TokenRequest) //nolint:forcetypeassert // a test
	a.asked = append(a.asked, of.GetNamespace()+"/"+of.GetName()+" for "+strconv.FormatInt(*asked.Spec.ExpirationSeconds, 10)+" s")
	asked.Status.Token = fmt.Sprintf("short-%d", len(a.asked)/2)
	return a.err
}

func TestNoKubeletSeesTheTokenOfTheOperator(t *testing.T) {
	var shown []string
	port, caFile := aKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{}`))
	})
	o := KubeletOptions{Port: port, CAFile: caFile, RequestTimeout: 10 * time.Second, Account: types.NamespacedName{Namespace: "coxswain-system", Name: "kubelet-stats"}}
	now, server := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)), &accounts{}
	k, err := newKubelets(&rest.Config{BearerToken: "of-the-operator"}, o, server, now)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the third comes when the token is to be renewed
		if _, err := k.use(t.Context(), "127.0.0.1"); err != nil {
			t.Fatal(err)
		}
		now.SetTime(now.Now().Add(3 * time.Minute))
	}
	if diff := cmp.Diff([]string{"Bearer short-1", "Bearer short-1", "Bearer short-2"}, shown); diff != "" {
		t.Errorf("kubelets were shown (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"token", "coxswain-system/kubelet-stats for 600 s", "token", "coxswain-system/kubelet-stats for 600 s"}, server.asked); diff != "" {
		t.Error(diff)
	}
	server.err, shown = errors.New("forbidden"), nil
	now.SetTime(now.Now().Add(time.Hour))
	if _, err := k.use(t.Context(), "127.0.0.1"); err == nil || !strings.Contains(err.Error(), "requesting a token of ServiceAccount coxswain-system/kubelet-stats") || len(shown) > 0 {
		t.Errorf("%v, and the kubelet was shown %q", err, shown)
	}
}

func TestATokenThatAKubeletRefusesIsAskedForAnewOnce(t *testing.T) {
	var shown []string
	taken := "Bearer short-1"
	port, caFile := aKubelet(t, func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != taken {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(`{}`))
	})
	o := KubeletOptions{Port: port, CAFile: caFile, RequestTimeout: 10 * time.Second, Account: types.NamespacedName{Namespace: "coxswain-system", Name: "kubelet-stats"}}
	now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	k, err := newKubelets(&rest.Config{}, o, &accounts{}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what  string
		taken string
		after time.Duration
		want  string
		fails bool
	}{
		{what: "the first token is taken", taken: "short-1", want: "short-1"},
		{what: "the account was made anew, which the first token does not outlive", taken: "short-2", want: "short-1", fails: true},
		{what: "the next question has another token", taken: "short-2", want: "short-2"},
		{what: "a kubelet takes no token at all", want: "short-2", fails: true},
		{what: "a token that a kubelet refuses is not replaced each time", want: "short-2", fails: true},
		{what: "a token is replaced when its time has come", after: tokenLifetime / 2, want: "short-3", fails: true},
		{what: "a token that a kubelet refuses is replaced once before its time", want: "short-4", fails: true},
		{what: "a token that a kubelet refuses is not replaced twice before its time", want: "short-4", fails: true},
	} {
		shown, taken = nil, "Bearer "+step.taken
		now.SetTime(now.Now().Add(step.after))
		if _, err := k.use(t.Context(), "127.0.0.1"); (err != nil) != step.fails {
			t.Errorf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff([]string{"Bearer " + step.want}, shown); diff != "" {
			t.Errorf("%s: the kubelet was shown (-want +got):\n%s", step.what, diff)
		}
	}
}
