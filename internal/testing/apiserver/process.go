// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end after SIGTERM before it is killed; its data are thrown away.
const stopTimeout = 5 * time.Second

// process is a running child with its log.
type process struct {
	name    string
	logPath string
	cmd     *exec.Cmd
	exited  chan struct{}
}

// startProcess runs binary with args; the output goes to dir/name.log. The kernel kills the child when this process
// ends, so that nothing is left behind even by "kill -9" or a test's time-out. Memory is cheaper here than its collection, which took a
// fifth of a kube-apiserver's processor time.
func startProcess(dir, name, binary string, args ...string) (*process, error) {
	p := &process{name: name, logPath: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.logPath)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(binary, append([]string{name}, args...)...) //nolint:noctx,gosec // outlives every test, stop ends it; the developer names the binary
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, dir
	p.cmd.Env = append(os.Environ(), "GOGC=400", "GOMEMLIMIT=1GiB")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	started := make(chan error, 1)
	go func() {
		// The death signal is sent when the starting thread ends, not the process: keep the thread as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// stop ends the process, if need be by force, and waits for it.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// died returns how the process ended and the last lines of its log.
func (p *process) died() error {
	log, err := os.ReadFile(p.logPath)
	if err != nil {
		log = []byte(err.Error())
	}
	const maxLines = 15
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	if len(lines) > maxLines {
		lines = lines[len(lines)-maxLines:]
	}
	return fmt.Errorf("%s ended: %s\n%s", p.name, p.cmd.ProcessState, bytes.Join(lines, []byte("\n")))
}

// freePorts returns n TCP ports of 127.0.0.1 that were free a moment ago.
func freePorts(n int) ([]string, error) {
	ports := make([]string, 0, n)
	for range n {
		// Held open until all are chosen, so that they differ.
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // does not block
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
