// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// tally counts calls by what they do, as "patch pods/status" or "POST nodes".
type tally map[string]int64

func (t tally) total() int64 {
	n := int64(0)
	for _, calls := range t {
		n += calls
	}
	return n
}

// since returns what was added to an earlier tally.
func (t tally) since(before tally) tally {
	out := tally{}
	for what, n := range t {
		if added := n - before[what]; added != 0 {
			out[what] = added
		}
	}
	return out
}

// only leaves what keep wants.
func (t tally) only(keep func(what string) bool) tally {
	out := maps.Clone(t)
	maps.DeleteFunc(out, func(what string, _ int64) bool { return !keep(what) })
	return out
}

// writes returns the changing calls to the API server, without Events, which show people what happened, and Leases, by which
// managers agree on who leads.
func (t tally) writes() tally {
	return t.only(func(what string) bool {
		verb, resource, _ := strings.Cut(what, " ")
		return verb != "get" && verb != "list" && verb != "watch" && resource != "events" && resource != "leases"
	})
}

// changes returns the writes with the Events: an Event costs the API server as much as any other.
func (t tally) changes() tally {
	out := t.writes()
	maps.Copy(out, t.events())
	return out
}

// reads returns the calls that ask the API server about objects or kinds, instead of a cache. A watch is asked for anew every few
// minutes.
func (t tally) reads() tally {
	return t.only(func(what string) bool {
		verb, resource, _ := strings.Cut(what, " ")
		return (verb == "get" || verb == "list") && resource != "leases"
	})
}

func (t tally) events() tally {
	return t.only(func(what string) bool { return strings.HasSuffix(what, " events") })
}

// posts returns the changing calls to slurmrestd.
func (t tally) posts() tally {
	return t.only(func(what string) bool { return !strings.HasPrefix(what, "GET ") })
}

func (t tally) gets() tally {
	return t.only(func(what string) bool { return strings.HasPrefix(what, "GET ") })
}

// proxy stands between a client and the API server and counts what passes.
type proxy struct {
	server   *httptest.Server
	resolver request.RequestInfoFactory

	mu    sync.Mutex
	calls tally
	// refused are those that were answered with an error, as "409 delete pods", and bytes the size of writes.
	refused tally
	bytes   int64
}

func newProxy(t *testing.T, config *rest.Config) *proxy {
	t.Helper()
	p := &proxy{calls: tally{}, refused: tally{}, resolver: request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	reverse := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, BufferPool: &buffers{},
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode >= http.StatusBadRequest {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.refused[strconv.Itoa(r.StatusCode)+" "+p.name(r.Request)]++
			}
			return nil
		},
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.note(r)
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// buffers are used again and again.
type buffers struct{ pool sync.Pool }

// Get is part of httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return *buffer
	}
	return make([]byte, 32<<10)
}

// Put is part of httputil.BufferPool.
func (b *buffers) Put(buffer []byte) { b.pool.Put(&buffer) }

// name returns what a call does.
func (p *proxy) name(r *http.Request) string {
	info, err := p.resolver.NewRequestInfo(r)
	switch {
	case err == nil && info.IsResourceRequest && info.Subresource != "":
		return info.Verb + " " + info.Resource + "/" + info.Subresource
	case err == nil && info.IsResourceRequest:
		return info.Verb + " " + info.Resource
	case r.Method == http.MethodGet:
		return "get " + r.URL.Path // discovery
	}
	return r.Method + " " + r.URL.Path
}

func (p *proxy) note(r *http.Request) {
	what := p.name(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[what]++
	if len(tally{what: 1}.changes()) > 0 {
		p.bytes += r.ContentLength
	}
}

func (p *proxy) seen() (calls, refused tally, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls), maps.Clone(p.refused), p.bytes
}

// cost is what the operator did, seen from outside.
type cost struct {
	// api are the calls to the API server, and slurm those to slurmrestd.
	api, slurm tally
	// refused are the calls to the API server that had no success, and said is the bytes that its writes sent there.
	refused tally
	said    int64
	// bodies and wire are the bytes between the operator and slurmrestd, without and with what HTTP adds.
	bodies, wire int64
	// cpu is the processor time that it used, and server that of the API server and etcd for all clients.
	cpu, server time.Duration
	// took is how long it was until what was to happen had happened.
	took time.Duration
}

func (b *bench) spent() cost {
	counters := b.slurm.Counters()
	slurm := tally{}
	for what, n := range counters.Calls {
		slurm[what] = int64(n)
	}
	api, refused, said := b.proxy.seen()
	return cost{
		api: api, refused: refused, said: said, slurm: slurm, bodies: counters.Received + counters.Sent, wire: b.wire.Load(),
		server: b.server.CPU(b.t),
	}
}

// cost returns what the operator does for something, until it comes to rest.
func (b *bench) cost(do func()) cost {
	b.t.Helper()
	before, process, used, began := b.spent(), b.process, b.process.cpu(), time.Now()
	do()
	took := time.Since(began)
	b.settle()
	after := b.spent()
	out := cost{
		api: after.api.since(before.api), refused: after.refused.since(before.refused), said: after.said - before.said,
		slurm: after.slurm.since(before.slurm), bodies: after.bodies - before.bodies, wire: after.wire - before.wire,
		server: after.server - before.server, took: took,
	}
	if b.process == process {
		out.cpu = b.process.cpu() - used
	}
	return out
}

// quiet returns how long nothing is written by an operator at rest. The more nodes Slurm has, the longer the Slurm cache pauses between
// two lists, and only a list may show that there is more to do.
func (b *bench) quiet() time.Duration {
	return 1500*time.Millisecond + time.Duration(b.size)*2*time.Millisecond
}

// seen waits until the Slurm cache has seen all that has happened in Slurm. After a storm of changes that takes a while, because
// the Slurm cache pays for its lists with time in which it asks for none.
func (b *bench) seen() {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last, deadline := b.slurm.Counters(), time.Now().Add(b.longest())
	for now := range tick.C {
		next := b.slurm.Counters()
		if asked := next.Calls["GET nodes"] - last.Calls["GET nodes"]; asked > 0 {
			if next.Unchanged-last.Unchanged == asked {
				return
			}
			last = next
		}
		b.process.check(b.t)
		if now.After(deadline) {
			b.t.Fatal("the link does not ask Slurm any more")
		}
	}
}

// settle waits until the operator has written nothing for a while, neither here nor there.
func (b *bench) settle() {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last, since, deadline := int64(-1), time.Now(), time.Now().Add(b.longest())
	for now := range tick.C {
		spent := b.spent()
		if n := spent.api.writes().total() + spent.slurm.posts().total(); n != last {
			last, since = n, now
		}
		if now.Sub(since) > b.quiet() {
			return
		}
		b.process.check(b.t)
		if now.After(deadline) {
			b.t.Fatalf("the operator does not come to rest; it has written %v and %v", spent.api.writes(), spent.slurm.posts())
		}
	}
}

// TestTheProxyCounts sees that a write cannot pass unseen, whatever its form.
func TestTheProxyCounts(t *testing.T) {
	server := apiserver.StartBare(t)
	p := newProxy(t, server.Config)
	c, err := kubernetes.NewForConfig(&rest.Config{Host: p.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	maps := c.CoreV1().ConfigMaps(server.Namespace)
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, updated := maps.Update(ctx, made, metav1.UpdateOptions{})
	_, patched := maps.Patch(ctx, "a", "application/merge-patch+json", []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
	_, listed := maps.List(ctx, metav1.ListOptions{})
	if _, err := maps.Get(ctx, "absent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	deleted := maps.Delete(ctx, "a", metav1.DeleteOptions{})
	emptied := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	for _, err := range []error{updated, patched, listed, deleted, emptied} {
		if err != nil {
			t.Error(err)
		}
	}
	want := tally{"create configmaps": 1, "update configmaps": 1, "patch configmaps": 1, "delete configmaps": 1, "deletecollection configmaps": 1}
	calls, refused, bytes := p.seen()
	if refused.total() != 1 || refused["404 get configmaps"] != 1 || bytes == 0 {
		t.Errorf("refused were %v; %d bytes were written", refused, bytes)
	}
	if got := calls.writes(); len(got.since(want)) > 0 || len(want.since(got)) > 0 {
		t.Errorf("the proxy counted %v, want %v", got, want)
	}
}
