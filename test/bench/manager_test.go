// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// proxy counts what the operator writes to the API server, without Events and Leases.
type proxy struct {
	server *httptest.Server
	writes atomic.Int64
}

func newProxy(t *testing.T, server *apiserver.Server) *proxy {
	t.Helper()
	p := &proxy{}
	target, err := url.Parse(server.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	reverse := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "/leases") {
			p.writes.Add(1)
		}
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// process is the operator as it is shipped.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	log bytes.Buffer
	// started is when it was asked to start.
	started time.Time
}

// start runs the manager against the proxy and the fake slurmrestd.
func (b *bench) start() *process {
	b.t.Helper()
	p := &process{t: b.t, started: time.Now()}
	p.cmd = exec.CommandContext(b.t.Context(), *manager, "--leader-elect=false", "--metrics-addr=0", "--health-addr=127.0.0.1:0",
		"--namespaces="+b.server.Namespace, "--slurmrestd-url="+b.rest.URL, "--controllers=controller,restapi,nodeset")
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		b.t.Fatalf("starting %s: %v", *manager, err)
	}
	b.t.Cleanup(p.stop)
	return p
}

func (p *process) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	_ = p.cmd.Wait()
	if p.t.Failed() {
		p.t.Logf("the manager's log:\n%s", p.log.String())
	}
}

// cpu is the processor time that it has used.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "stat"))
	if err != nil {
		p.t.Fatal(err)
	}
	// proc_pid_stat(5): utime and stime are fields 14 and 15, in ticks of 10 ms; the name in field 2 may have blanks.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// rss is the memory that it occupies, in MiB.
func (p *process) rss() float64 {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib := 0
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				p.t.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	p.t.Fatal("/proc does not say how much memory the manager has")
	return 0
}
