// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// jailVolume waits for the volume of claim jail, and returns the directory of this machine that it is.
func (s *scene) jailVolume(t *testing.T) string {
	t.Helper()
	if !s.Local {
		t.Skip("only of a local Kubernetes can processes and volumes be looked at from outside")
	}
	var dir string
	eventually(t, soon, "the volume of claim jail", func(ctx context.Context) error {
		var c corev1.PersistentVolumeClaim
		if err := s.Get(ctx, s.name("jail"), &c); err != nil {
			return err
		}
		var v corev1.PersistentVolume
		if err := s.Get(ctx, types.NamespacedName{Name: c.Spec.VolumeName}, &v); err != nil {
			return err
		}
		if v.Spec.HostPath == nil {
			return fmt.Errorf("volume %s is no directory", v.Name)
		}
		dir = v.Spec.HostPath.Path
		return nil
	})
	return dir
}

const (
	// moment is for how long a program is on a processor between two looks of stopAmid. The middle of its work may last a tenth of a second.
	moment = 2 * time.Millisecond
	// idle is for how long it may wait for others between two looks: a program that is stopped nearly always gets nothing done.
	idle = 50 * time.Millisecond
)

// stopAmid stops a program that has a volume mounted, in the middle of its work: when amid reports that it is there. The program stays
// stopped until it is killed. command is how its command line begins, without the directory.
//
// On a busy machine one look takes longer than all of the work. So the program is stopped as soon as it is found, and continues for
// moments: nothing happens during a look. By the clock a moment would be too long for a copy, or too short for a program that first has to
// learn of its work.
func stopAmid(t *testing.T, command, volume string, amid func() (bool, error)) *os.Process {
	t.Helper()
	var p *os.Process
	wanted := search{command: command, volume: filepath.Base(volume)}
	t.Cleanup(func() {
		if p != nil {
			_ = p.Kill() // what is stopped never ends
		}
	})
	err := walk.Poll(t.Context(), patient, moment, command+" to be in the middle of its work", func(ctx context.Context) (err error) {
		if p == nil {
			p, err = wanted.process()
		} else {
			err = goOn(ctx, p)
		}
		if err == nil {
			err = p.Signal(syscall.SIGSTOP)
		}
		if err != nil {
			p = nil // it has ended; another one may come
			return err
		}
		is, err := amid()
		if err == nil && !is {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// goOn lets a stopped process run for a moment.
func goOn(ctx context.Context, p *os.Process) error {
	before, err := onProcessor(p)
	if err != nil {
		return err
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	tick, late := time.NewTicker(time.Millisecond), time.NewTimer(idle)
	defer tick.Stop()
	defer late.Stop()
	for {
		select {
		case <-tick.C:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if now, err := onProcessor(p); err != nil || now-before >= moment {
			return err
		}
	}
}

// onProcessor is for how long the threads of a process have been on a processor (proc(5), schedstat). Those that have ended do not count.
func onProcessor(p *os.Process) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.Pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(err, fmt.Errorf("process %d has ended", p.Pid))
	}
	var sum time.Duration
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		on, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(on, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", path, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// search looks for the process of a command that has a volume mounted, again and again.
type search struct {
	command, volume string
	// strangers are processes that do not have the volume mounted. There are hundreds, and to look at all of them takes a tenth of a
	// second on a busy machine, in which a copy comes far.
	strangers map[string]bool
}

func (s *search) process() (*os.Process, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	all, err := proc.Readdirnames(-1)
	if err := errors.Join(err, proc.Close()); err != nil {
		return nil, err
	}
	before := s.strangers
	s.strangers = map[string]bool{}
	for _, name := range all {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if before[name] {
			s.strangers[name] = true
			continue
		}
		is, stranger := s.look(filepath.Join("/proc", name))
		if is {
			return os.FindProcess(pid)
		}
		if stranger {
			s.strangers[name] = true
		}
	}
	return nil, fmt.Errorf("no %s has the volume %s", s.command, s.volume)
}

// look reports whether a process is the one that is wanted, and whether it never will be.
func (s *search) look(dir string) (is, stranger bool) {
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return false, false // it has ended
	}
	mounts, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
	if err != nil {
		return false, false
	}
	program, args, _ := strings.Cut(string(line), "\x00")
	if !strings.Contains(string(mounts), "/"+s.volume+" ") {
		// What becomes the first process of a container has the mounts of its Kubernetes node at first.
		return false, !strings.HasPrefix(args, "init")
	}
	return strings.HasPrefix(filepath.Base(program)+" "+strings.ReplaceAll(args, "\x00", " "), s.command), false
}
