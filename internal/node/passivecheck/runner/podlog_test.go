// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/runner"
)

// podLog makes the FIFO of a worker's log, with the process that holds it open.
func podLog(t *testing.T, root string) *os.File {
	t.Helper()
	path := filepath.Join(root, runner.PodLog)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	})
	return held
}

// said returns what is in the FIFO.
func said(t *testing.T, held *os.File) string {
	t.Helper()
	buffer := make([]byte, 1<<17)
	n, err := unix.Read(int(held.Fd()), buffer)
	if errors.Is(err, unix.EAGAIN) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(buffer[:n])
}

func TestAnInternalErrorIsToldInTheLogOfThePod(t *testing.T) {
	n := newNode(t, "IDLE", "")
	held := podLog(t, n.root)
	if code := n.run(t.Context(), passivecheck.Prolog, nil, `[{"name": "a", "command": "/absent", "contexts": ["prolog"]}, {"name": "b", "command": "true"}]`); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	got := said(t, held)
	for _, want := range []string{"level=ERROR", "An internal error of check-runner", "context=prolog check=a error="} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if strings.Count(got, "\n") != 1 || strings.Contains(n.log.String(), "could not be told") {
		t.Errorf("the pod has %q, and the runner %q", got, n.log.String())
	}
	n.run(t.Context(), passivecheck.Prolog, nil, `[{"name": "b", "command": "true"}]`)
	if got := said(t, held); got != "" {
		t.Errorf("nothing went wrong, and the pod has %q", got)
	}
}

func TestTheLogOfThePodHoldsNobodyUp(t *testing.T) {
	counter := passivecheck.Counter{Context: passivecheck.Prolog, Check: "a"}
	t.Run("a long line is cut, so that slurmd's lines stay whole", func(t *testing.T) {
		root := t.TempDir()
		held := podLog(t, root)
		if err := runner.WriteToPodLog(root, counter, errors.New(strings.Repeat("x", 10_000))); err != nil {
			t.Error(err)
		}
		if got := said(t, held); len(got) != 4096 || !strings.HasSuffix(got, "x\n") {
			t.Errorf("%d bytes, which end with %q", len(got), got[max(0, len(got)-10):])
		}
	})
	t.Run("nobody has read for a while", func(t *testing.T) {
		root := t.TempDir()
		held := podLog(t, root)
		for {
			if _, err := unix.Write(int(held.Fd()), bytes.Repeat([]byte("x"), 4096)); err != nil {
				break
			}
		}
		if err := runner.WriteToPodLog(root, counter, errors.New("x")); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("nobody has it open", func(t *testing.T) {
		root := t.TempDir()
		path := filepath.Join(root, runner.PodLog)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), unix.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := runner.WriteToPodLog(root, counter, errors.New("x")); !errors.Is(err, unix.ENXIO) {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("a file is left alone, as nobody keeps it small", func(t *testing.T) {
		n := newNode(t, "IDLE", "")
		n.write(runner.PodLog, "slurmd")
		if err := runner.WriteToPodLog(n.root, counter, errors.New("x")); err != nil || n.read(runner.PodLog) != "slurmd" {
			t.Errorf("%v, and the file has %q", err, n.read(runner.PodLog))
		}
	})
	t.Run("an image without it does without", func(t *testing.T) {
		if err := runner.WriteToPodLog(t.TempDir(), counter, errors.New("x")); err != nil {
			t.Error(err)
		}
	})
}
