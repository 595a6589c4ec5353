// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

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
		"it answers the operator": {serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/stats/summary" || r.Header.Get("Authorization") != "Bearer of-the-operator" || !r.Close {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			_, _ = w.Write([]byte(`{"pods": [{"podRef": {"uid": "u1"}, "ephemeral-storage": {"usedBytes": 70}}]}`))
		}},
		"the operator lacks the right":   {serve: answer(http.StatusForbidden, "Forbidden (user=coxswain)"), refuse: "nodes/stats"},
		"it does not know the operator":  {serve: answer(http.StatusUnauthorized, ""), refuse: "nodes/stats"},
		"it is ill":                      {serve: answer(http.StatusInternalServerError, "secret"), refuse: "it answers 500"},
		"it answers something else":      {serve: answer(http.StatusOK, "ok"), refuse: "reading the summary"},
		"it is slow":                     {serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, edit: func(o *KubeletOptions) { o.RequestTimeout = 50 * time.Millisecond }, refuse: "asking"},
		"its certificate is not trusted": {serve: answer(http.StatusOK, "{}"), edit: func(o *KubeletOptions) { o.CAFile = "" }, refuse: "certificate"},
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
			k, err := newKubelets(&rest.Config{Host: "https://api.example.com", BearerToken: "of-the-operator", TLSClientConfig: rest.TLSClientConfig{ServerName: "api.example.com"}}, o)
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
	k, err := newKubelets(&rest.Config{BearerToken: "of-the-operator"}, KubeletOptions{Port: port, InsecureSkipTLSVerify: true, RequestTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(t.Context(), "127.0.0.1"); err == nil || !strings.Contains(err.Error(), "it answers 302") || asked.Load() != 0 {
		t.Errorf("%v, and the other place was asked %d times", err, asked.Load())
	}
}
