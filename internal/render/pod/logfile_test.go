// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// logfile is the logfile sidecar of a daemon whose log is a file of a test.
type logfile struct {
	t    *testing.T
	fifo string
	cmd  *exec.Cmd
	out  output
}

func newLogfile(t *testing.T) *logfile {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "slurm")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// As a kubelet makes the volume.
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return &logfile{t: t, fifo: filepath.Join(dir, "slurmd.log")}
}

// start starts it and waits until it listens.
func (l *logfile) start() {
	l.t.Helper()
	l.cmd = exec.Command("sh", "-c", logfileScript)
	l.cmd.Env = append(os.Environ(), "SOCKET="+l.fifo)
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.out
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	l.cmd.WaitDelay = 5 * time.Second
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { l.signal(syscall.SIGKILL) })
	l.until("it listens", func() bool {
		f, err := os.OpenFile(l.fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_ = f.Close()
		}
		return err == nil
	})
}

func (l *logfile) signal(signal syscall.Signal) { _ = syscall.Kill(-l.cmd.Process.Pid, signal) }

// daemon opens the log as slurmd does.
func (l *logfile) daemon() *os.File {
	l.t.Helper()
	f, err := os.OpenFile(l.fifo, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (l *logfile) writes(daemon *os.File, line string) {
	l.t.Helper()
	if _, err := daemon.WriteString(line + "\n"); err != nil {
		l.t.Fatal(err)
	}
	l.until("it prints "+line, func() bool { return strings.HasSuffix(l.out.String(), line+"\n") })
}

func (l *logfile) until(what string, holds func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("not within a minute: %s; it has printed %q", what, l.out.String())
		}
	}
}

func TestLogfileOutlivesItsDaemonAndHearsSignals(t *testing.T) {
	l := newLogfile(t)
	l.start()
	for _, line := range []string{"first daemon", "second daemon"} {
		daemon := l.daemon()
		l.writes(daemon, line)
		if err := daemon.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l.signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- l.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("told to end, it says %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

func TestADaemonKeepsItsLogWhenTheSidecarIsRestarted(t *testing.T) {
	l := newLogfile(t)
	l.start()
	daemon := l.daemon()
	l.writes(daemon, "before")
	for _, line := range []string{"after a crash", "after another"} {
		l.signal(syscall.SIGKILL)
		_ = l.cmd.Wait()
		l.start()
		l.writes(daemon, line)
	}
}

func TestJobsGetNothingOfTheLog(t *testing.T) {
	l := newLogfile(t)
	l.start()
	for name, path := range map[string]string{"the log": l.fifo, "its directory": filepath.Dir(l.fifo)} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		denied := fs.FileMode(0o006)
		if info.IsDir() {
			denied = 0o022
		} else if os.Geteuid() == 0 {
			denied = 0o077
		}
		if got := info.Mode().Perm() & denied; got != 0 {
			t.Errorf("%s has mode %v, which gives others %v", name, info.Mode(), got)
		}
	}
	if info, err := os.Stat(l.fifo); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the log is no FIFO: %v, %v", info.Mode(), err)
	}
}
