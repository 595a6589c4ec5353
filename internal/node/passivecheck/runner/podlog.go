// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
)

// PodLog is slurmd's log, a FIFO that container "logfile" of the worker's pod prints (docs/decisions/012-a-log-that-never-blocks.md).
// Only root may write into it.
const PodLog = "/var/log/slurm/slurmd.log"

// maxLine is how long a line may be, in bytes, that no other writer of a FIFO cuts in two: PIPE_BUF, pipe(7).
const maxLine = 4096

// WriteToPodLog writes an internal error into the log of the worker's pod, below the root of the container, from where log collectors read
// it. It does not wait. An image whose slurmd has another log does without.
func WriteToPodLog(root string, counter passivecheck.Counter, fault error) error {
	fifo, err := os.OpenFile(filepath.Join(root, PodLog), os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0) //nolint:gosec // a constant path
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the log of the pod: %w", err)
	}
	defer func() { _ = fifo.Close() }()
	if info, err := fifo.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return err // nobody keeps a file small
	}
	var line bytes.Buffer
	slog.New(slog.NewTextHandler(&line, nil)).Error("An internal error of check-runner keeps no job from running", "context", counter.Context,
		"check", counter.Check, "error", fault)
	text := line.Bytes()
	if len(text) > maxLine {
		text = append(text[:maxLine-1], '\n')
	}
	// By the file's Write the runtime would wait until there is room in the FIFO.
	raw, err := fifo.SyscallConn()
	if err != nil {
		return fmt.Errorf("writing into the log of the pod: %w", err)
	}
	var writeErr error
	err = raw.Control(func(fd uintptr) { _, writeErr = unix.Write(int(fd), text) })
	if err = errors.Join(err, writeErr); err != nil {
		return fmt.Errorf("writing into the log of the pod: %w", err)
	}
	return nil
}
