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

// stopAmid stops a program that has a volume mounted, in the middle of its work: when amid says that it is there. The program stays
// stopped until it is killed. command is how its command line begins, without the directory.
func stopAmid(t *testing.T, command, volume string, amid func() (bool, error)) *os.Process {
	t.Helper()
	var p *os.Process
	const often = time.Millisecond // the middle may last a tenth of a second
	err := walk.Poll(t.Context(), patient, often, command+" to be in the middle of its work", func(context.Context) (err error) {
		if p == nil {
			if p, err = processWith(command, volume); err != nil {
				return err
			}
		}
		if is, err := amid(); err != nil || !is {
			return errors.Join(err, errors.New("it is not"))
		}
		if err = p.Signal(syscall.SIGSTOP); err != nil {
			p = nil // it was one that has ended
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // what is stopped never ends
	return p
}

// processWith finds the process of a command that has a volume mounted.
func processWith(command, volume string) (*os.Process, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range all {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		program, args, _ := strings.Cut(string(line), "\x00")
		if err != nil || !strings.HasPrefix(filepath.Base(program)+" "+strings.ReplaceAll(args, "\x00", " "), command) {
			continue
		}
		mounts, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
		if err != nil || !strings.Contains(string(mounts), "/"+filepath.Base(volume)+" ") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		return os.FindProcess(pid)
	}
	return nil, fmt.Errorf("no %s has the volume %s", command, filepath.Base(volume))
}
