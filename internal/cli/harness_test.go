// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// now is the time of all tests that compare what is printed.
var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// ago returns a time before now.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nebiusv1.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// world is an API server in memory behind HTTP.
type world struct {
	sim        *kubesim.Server
	scheme     *runtime.Scheme
	kubeconfig string

	mu       sync.Mutex
	requests []string
	// forbidden is a part of paths that are refused.
	forbidden string
	// expired is how many watches are still answered with "too old resource version".
	expired int
}

// newWorld serves the objects.
func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	w := &world{scheme: newScheme(t)}
	w.sim = kubesim.New(w.scheme)
	for _, o := range objects {
		w.put(t, o)
	}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.kubeconfig = writeKubeconfig(t, &rest.Config{Host: server.URL}, "default")
	return w
}

func (w *world) put(t testing.TB, o client.Object) {
	t.Helper()
	kinds, _, err := w.scheme.ObjectKinds(o)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kinds[0])
	if u.GetNamespace() == "" && kinds[0].Kind != "Node" {
		u.SetNamespace("default")
	}
	if kinds[0].Kind == "Pod" && u.GetUID() == "" {
		u.SetUID(types.UID("uid-of-" + u.GetName())) // one that is new has no status
	}
	w.sim.Put(u)
}

// ServeHTTP answers from memory, and remembers the request.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests = append(w.requests, r.Method+" "+r.URL.RequestURI())
	expired := r.URL.Query().Get("watch") != "" && w.expired > 0
	if expired {
		w.expired--
	}
	forbidden := w.forbidden != "" && strings.Contains(r.URL.Path, w.forbidden)
	w.mu.Unlock()
	if forbidden {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"you may not","code":403}`)
		return
	}
	if expired {
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old resource version","code":410}}`)
		return
	}
	answer, err := w.sim.RoundTrip(r)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	maps.Copy(out.Header(), answer.Header)
	out.WriteHeader(answer.StatusCode)
	flusher, ok := out.(http.Flusher)
	buffer := make([]byte, 1<<16)
	for {
		n, err := answer.Body.Read(buffer)
		_, _ = out.Write(buffer[:n])
		if ok {
			flusher.Flush()
		}
		if err != nil {
			return
		}
	}
}

// asked returns the requests so far.
func (w *world) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.requests...)
}

// awaitWatches waits until watches were asked for so many times.
func (w *world) awaitWatches(t testing.TB, want int) {
	t.Helper()
	watches := func() (n int) {
		for _, request := range w.asked() {
			if strings.Contains(request, "watch=true") {
				n++
			}
		}
		return n
	}
	if !eventually(func() bool { return watches() >= want }) {
		t.Fatalf("after %s %d watches were asked for, not %d", patience, watches(), want)
	}
}

// writeKubeconfig writes a kubeconfig for the server of a config, and returns its path.
func writeKubeconfig(t testing.TB, config *rest.Config, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	out := clientcmdapi.NewConfig()
	out.Clusters["c"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
	}
	out.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificate: config.CertFile, ClientCertificateData: config.CertData, ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
		Token: config.BearerToken, Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
	}
	out.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	out.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// result is what a run of the program has left.
type result struct {
	code        int
	out, errors string
}

// run runs the program against the world.
func (w *world) run(t testing.TB, args ...string) result {
	t.Helper()
	return run(t.Context(), t, program(), append([]string{"--kubeconfig=" + w.kubeconfig}, args...)...)
}

func program() cli.Program {
	return cli.Program{Description: "The Coxswain kubectl-slurm is tested.", Version: "1.2.3", User: "me", Now: func() time.Time { return now }}
}

func run(ctx context.Context, t testing.TB, p cli.Program, args ...string) result {
	t.Helper()
	var out, errors bytes.Buffer
	p.Streams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errors}
	code := cli.Run(ctx, p, args)
	return result{code: code, out: out.String(), errors: errors.String()}
}

// check fails the test when the exit code is another one, or when there were errors and none were wanted.
func (r result) check(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d; it printed %q and the errors %q", r.code, code, r.out, r.errors)
	}
	return r
}

// golden returns what a golden file holds: the command, what it printed and its exit code. The flags of every kubectl are not ours.
func (r result) golden(args ...string) []byte {
	var out strings.Builder
	printed, _, _ := strings.Cut(r.out, "\nGlobal Flags:")
	out.WriteString("$ kubectl slurm " + strings.Join(args, " ") + "\n" + printed)
	if r.errors != "" {
		out.WriteString("--- errors\n" + r.errors)
	}
	out.WriteString("--- exit code " + string(rune('0'+r.code)) + "\n")
	return []byte(out.String())
}
