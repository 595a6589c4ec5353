// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress prints what is going on, with the time since the start.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is how long a step may last without a line when there is no terminal.
const quiet = 15 * time.Second

// Printer prints one line per finished step. On a terminal a transient line
// shows the step in progress; elsewhere such lines appear every 15 s.
type Printer struct {
	mu        sync.Mutex
	w         io.Writer
	terminal  bool
	start     time.Time
	last      time.Time
	transient bool
}

// New returns a Printer that writes to f.
func New(f *os.File) *Printer {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return newPrinter(f, err == nil, time.Now())
}

func newPrinter(w io.Writer, terminal bool, now time.Time) *Printer {
	return &Printer{w: w, terminal: terminal, start: now, last: now}
}

// Step reports a finished step.
func (p *Printer) Step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	now := time.Now()
	_, _ = fmt.Fprintln(p.w, p.line(now, format, args...))
	p.last = now
}

// Doing reports what is still going on.
func (p *Printer) Doing(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case p.terminal:
		p.clear()
		line := p.line(now, format, args...)
		_, _ = fmt.Fprint(p.w, line[:min(len(line), 79)])
		p.transient = true
	case now.Sub(p.last) >= quiet:
		_, _ = fmt.Fprintln(p.w, p.line(now, format, args...))
		p.last = now
	}
}

// Elapsed returns the time since the Printer was made.
func (p *Printer) Elapsed() time.Duration { return time.Since(p.start) }

func (p *Printer) clear() {
	if p.transient {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
		p.transient = false
	}
}

func (p *Printer) line(now time.Time, format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	return fmt.Sprintf("[%6.1fs] %s", now.Sub(p.start).Seconds(), strings.TrimRight(text, "\n"))
}
