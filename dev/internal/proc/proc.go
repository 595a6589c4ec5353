// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proc starts long-lived processes and finds them again.
//
// A process is recognised by a variable in its environment, not by a recorded process ID. Such a mark is not lost when localkube is
// killed between starting a process and writing a file. It never points to a stranger that got the same ID later.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// markVariable holds "<cluster directory>:<component>".
const markVariable = "LOCALKUBE_PROCESS"

// path serves commands that run as a daemon's child or inside a node; a
// user's PATH may lack the sbin directories or lead into a home directory.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Spec is what to start.
type Spec struct {
	// Dir is the cluster's directory, Component a name unique within it.
	Dir, Component string
	// Path is the program, Args its argv.
	Path string
	Args []string
	// Log receives standard output and error; it is appended to.
	Log string
	// Cloneflags are the namespaces to unshare, see clone(2).
	Cloneflags uintptr
}

// Process is a live process of a cluster.
type Process struct {
	PID       int
	Component string
	Started   time.Time
}

// Start starts a process in a session of its own, with a minimal environment.
// The channel is closed when the process ends while the caller still runs.
func Start(spec Spec) (pid int, exited <-chan struct{}, err error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o750); err != nil {
		return 0, nil, fmt.Errorf("starting %s: %w", spec.Component, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, nil, fmt.Errorf("starting %s: %w", spec.Component, err)
	}
	defer func() { _ = log.Close() }()
	cmd := &exec.Cmd{
		Path:        spec.Path,
		Args:        spec.Args,
		Dir:         "/",
		Env:         append(Environment(), markVariable+"="+spec.Dir+":"+spec.Component),
		Stdout:      log,
		Stderr:      log,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Cloneflags: spec.Cloneflags},
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, fmt.Errorf("starting %s: %w", spec.Component, err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return cmd.Process.Pid, done, nil
}

// Environment returns the environment of every process that localkube starts,
// without proxies and kubeconfigs of the user.
func Environment() []string {
	environment := []string{"PATH=" + path, "LANG=C.UTF-8"}
	if home, err := os.UserHomeDir(); err == nil {
		environment = append(environment, "HOME="+home)
	}
	return environment
}

// dyingTimeout bounds the wait for the end of a process that was killed.
const dyingTimeout = 10 * time.Second

// Find returns the live processes of the cluster in dir, by component. Those
// that were killed but are not gone yet it waits for: they must not be taken
// for alive, and they still hold ports and namespaces.
func Find(ctx context.Context, dir string) (map[string]Process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dyingTimeout, fmt.Errorf("not within %v", dyingTimeout))
	defer cancel()
	for {
		found, dying, err := find(dir)
		if err != nil || len(dying) == 0 {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the end of the killed processes %v: %w", dying, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func find(dir string) (found map[string]Process, dying []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, nil, fmt.Errorf("listing processes: %w", err)
	}
	found = map[string]Process{}
	prefix := []byte(markVariable + "=" + dir + ":")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// Unreadable environments are those of other users and of processes
		// that have just ended.
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			component, ok := bytes.CutPrefix(v, prefix)
			if !ok {
				continue
			}
			// Children inherit the mark, but only Start makes sessions.
			fields, err := stat(pid)
			if err != nil || fields[statSession] != e.Name() {
				continue
			}
			if isDying(pid, fields) {
				dying = append(dying, pid)
				continue
			}
			started, err := startTime(fields)
			if err != nil {
				return nil, nil, fmt.Errorf("asking when process %d started: %w", pid, err)
			}
			found[string(component)] = Process{PID: pid, Component: string(component), Started: started}
		}
	}
	return found, dying, nil
}

// Watch returns a channel that is closed when a process ends.
func Watch(pid int) <-chan struct{} {
	done := make(chan struct{})
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		close(done) // It has ended already.
		return done
	}
	go func() {
		defer close(done)
		defer func() { _ = unix.Close(fd) }()
		for {
			//nolint:gosec // File descriptors are small.
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return done
}

// Kill kills processes with their children at once and waits until they are
// gone, those of their PID namespaces included.
func Kill(ctx context.Context, processes map[string]Process) error {
	var errs []error
	for _, p := range processes {
		if err := syscall.Kill(-p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("killing %s (process %d): %w", p.Component, p.PID, err))
		}
	}
	for _, p := range processes {
		for Alive(p.PID) {
			select {
			case <-ctx.Done():
				return errors.Join(append(errs, fmt.Errorf("waiting for the end of %s (process %d): %w", p.Component, p.PID, context.Cause(ctx)))...)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return errors.Join(errs...)
}

// Alive reports whether a process exists and is more than a zombie.
func Alive(pid int) bool {
	fields, err := stat(pid)
	return err == nil && fields[statState] != "Z" && fields[statState] != "X"
}

// Fields 3, 6, 9 and 22 of proc_pid_stat(5), counted from the third.
const (
	statState     = 0
	statSession   = 3
	statFlags     = 6
	statStartTime = 19
)

// stat returns the fields of /proc/PID/stat from the third on. The second, the
// command, is in parentheses and may contain any character.
func stat(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) <= statStartTime {
		return nil, fmt.Errorf("parsing /proc/%d/stat: %q", pid, b)
	}
	return fields, nil
}

// isDying reports whether a process is on its way out: its end has begun (the
// flag PF_EXITING of the kernel's sched.h) or a SIGKILL waits for it.
func isDying(pid int, fields []string) bool {
	const exiting = 0x4
	if flags, err := strconv.ParseUint(fields[statFlags], 10, 64); err != nil || flags&exiting != 0 {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(b)) {
		name, mask, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		pending, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		if err != nil || pending&(1<<(unix.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// ticksPerSecond is USER_HZ, 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// startTime returns when a process started; /proc has it in ticks since the machine
// started.
func startTime(fields []string) (time.Time, error) {
	ticks, err := strconv.ParseInt(fields[statStartTime], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, err
	}
	first, _, _ := strings.Cut(string(b), " ")
	uptime, err := time.ParseDuration(first + "s")
	if err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(ticks)*time.Second/ticksPerSecond - uptime), nil
}
