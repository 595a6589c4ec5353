// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// terminal is the caller's terminal while a program in a pod has it.
type terminal struct {
	fd    int
	state *term.State
	ctx   context.Context
	stop  context.CancelFunc
	sizes chan os.Signal
	asked bool
}

// terminalOf is the descriptor of a stream that is a terminal.
func terminalOf(stream io.Reader) (fd int, ok bool) {
	file, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	return int(file.Fd()), true
}

// openTerminal hands every key on to the program, Ctrl-C included, until close.
func openTerminal(ctx context.Context, stream io.Reader) (*terminal, error) {
	fd, ok := terminalOf(stream)
	if !ok {
		return nil, fmt.Errorf("standard input is not a terminal: leave out --tty")
	}
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("switching the terminal to raw mode: %w", err)
	}
	t := &terminal{fd: fd, state: state, sizes: make(chan os.Signal, 1)}
	t.ctx, t.stop = context.WithCancel(ctx)
	signal.Notify(t.sizes, syscall.SIGWINCH)
	return t, nil
}

// Next waits for the next size of the terminal, and returns nil when it is closed. The first is the present size.
func (t *terminal) Next() *remotecommand.TerminalSize {
	if t.asked {
		select {
		case <-t.sizes:
		case <-t.ctx.Done():
			return nil
		}
	}
	t.asked = true
	width, height, err := term.GetSize(t.fd)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)} //nolint:gosec // the system has them in 16 bits
}

// close leaves the terminal as it was.
func (t *terminal) close() {
	signal.Stop(t.sizes)
	t.stop()
	_ = term.Restore(t.fd, t.state)
}
