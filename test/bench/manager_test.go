// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// process is the operator as it is shipped.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	log bytes.Buffer
	// started is when it was asked to start, and ended is closed when it has ended.
	started time.Time
	ended   chan struct{}
	// stopped is true once it was asked to end.
	stopped atomic.Bool
}

// start runs the manager against the proxy and the fake slurmrestd.
func (b *bench) start() *process {
	b.t.Helper()
	path, err := built()
	if err != nil {
		b.t.Fatalf("building the manager: %v\n%s", err, path)
	}
	p := &process{t: b.root, started: time.Now(), ended: make(chan struct{})}
	arguments := []string{
		"--metrics-addr=0", "--health-addr=127.0.0.1:0", "--leader-elect-namespace=" + b.server.Namespace,
		"--namespaces=" + b.server.Namespace, "--slurmrestd-url=" + b.rest.URL,
		"--destructive-actions-per-minute=1000000", // which is not what is measured
	}
	if *flags != "" {
		arguments = append(arguments, strings.Split(*flags, ",")...)
	}
	p.cmd = exec.Command(path, arguments...)
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+b.server.Kubeconfig(b.root, b.proxy.server.URL))
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		b.t.Fatalf("starting %s: %v", path, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is in its log
	}()
	b.root.Cleanup(p.stop)
	return p
}

// check fails when the operator has ended by itself, as one does that has lost its lease: nothing more would happen.
func (p *process) check(t *testing.T) {
	t.Helper()
	if p.over() && !p.stopped.Swap(true) {
		p.tell(t)
		t.Fatal("the operator has ended by itself")
	}
}

// over reports whether it has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stop ends it as Kubernetes does. The end of its log shows more when something is wrong.
func (p *process) stop() {
	if p.stopped.Swap(true) {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	<-p.ended
	if p.t.Failed() {
		p.tell(p.t)
	}
}

// routine are the lines that controller-runtime writes about each controller at each start and end. A hundred of them hid the
// failure itself in the excerpt of a log.
var routine = regexp.MustCompile(`"msg":"(Starting|Stopping|Shutdown signal|All workers finished|Wait completed|shutting down server)`)

// tell prints the end of the log of an operator that has ended, without what each start and end writes.
func (p *process) tell(t *testing.T) {
	t.Helper()
	lines := slices.DeleteFunc(strings.SplitAfter(p.log.String(), "\n"), routine.MatchString)
	t.Logf("the manager's log:\n%s", strings.Join(lines[max(0, len(lines)-30):], ""))
}

// cpu returns the processor time that it has used.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	used, err := apiserver.CPUOf(p.cmd.Process.Pid)
	if err != nil {
		p.t.Fatal(err)
	}
	return used
}

// memory returns how much it occupies now, and has occupied at most, in MiB.
func (p *process) memory() (now, most float64) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		kib := 0
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, err = fmt.Sscan(rest, &kib)
			now = float64(kib) / 1024
		}
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, err = fmt.Sscan(rest, &kib)
			most = float64(kib) / 1024
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return now, most
}

// tellMemory prints both.
func (b *bench) tellMemory(scenario string) {
	b.t.Helper()
	now, most := b.process.memory()
	b.tell(scenario, "resident memory", now, "MiB")
	b.tell(scenario, "resident memory at most, since the start of the process", most, "MiB")
}
