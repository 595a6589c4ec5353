// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/dev/internal/kubeapi"
	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
)

// restartDelay keeps a daemon that cannot start from taking a whole CPU.
const restartDelay = time.Second

// Init is process 1 of a node: it prepares the node's view of the machine,
// runs the daemons and reaps orphans. It never returns without an error; when
// it ends, the kernel kills all that is in the node.
func Init(ctx context.Context, specPath string) error {
	spec, err := loadSpec(specPath)
	if err != nil {
		return err
	}
	if err := enter(spec); err != nil {
		return err
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	s := &supervisor{running: map[int]Daemon{}, due: make(chan Daemon, len(spec.Daemons))}
	var later []Daemon
	for _, d := range spec.Daemons {
		if d.AfterAPI {
			later = append(later, d)
			continue
		}
		s.start(d)
	}
	go func() {
		if err := waitForAPI(ctx, spec); err != nil {
			log.Printf("%v", err)
			return
		}
		for _, d := range later {
			s.due <- d
		}
	}()
	for {
		select {
		case d := <-s.due:
			s.start(d)
		case <-children:
			s.reap()
		}
	}
}

// waitForAPI needs no certificate: /readyz is open to anybody.
func waitForAPI(ctx context.Context, spec Spec) error {
	client, err := kubeapi.NewAnonymous(spec.APIServer, spec.CA)
	if err != nil {
		return err
	}
	for client.Ready(ctx) != nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the apiserver: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

type supervisor struct {
	running map[int]Daemon
	due     chan Daemon
}

func (s *supervisor) start(d Daemon) {
	pid, err := startDaemon(d)
	if err != nil {
		log.Printf("%v", err)
		s.again(d)
		return
	}
	log.Printf("started %s as process %d", d.Name, pid)
	s.running[pid] = d
}

func (s *supervisor) again(d Daemon) {
	time.AfterFunc(restartDelay, func() { s.due <- d })
}

// reap collects every ended child. Daemons are started without os/exec, whose
// Wait would compete for them.
func (s *supervisor) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if pid <= 0 {
			return
		}
		d, ok := s.running[pid]
		if !ok {
			continue
		}
		delete(s.running, pid)
		log.Printf("%s ended (exit status %d, signal %d), starting it again", d.Name, status.ExitStatus(), int(status.Signal()))
		s.again(d)
	}
}

func startDaemon(d Daemon) (int, error) {
	out, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", d.Name, err)
	}
	defer func() { _ = out.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", d.Name, err)
	}
	defer func() { _ = null.Close() }()
	p, err := os.StartProcess(d.Path, d.Args, &os.ProcAttr{Dir: "/", Env: proc.Environment(), Files: []*os.File{null, out, out}})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", d.Name, err)
	}
	pid := p.Pid
	return pid, p.Release()
}
