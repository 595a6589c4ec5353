// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// patience is how long output that is not a terminal may stay without a line.
	patience = 15 * time.Second
	// width is where transient lines end, so that they never take two lines of a terminal.
	width = 100
)

// Progress prints what is going on: one line for each thing done, with the time since the start. On a terminal the
// last line shows what is being waited for; elsewhere such a line appears every 15 s. Steps that are taken at the same time
// have a Progress each, on one page.
type Progress struct {
	*page
	what  string
	since time.Time
}

// page is what the steps of a walk are printed on.
type page struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	start    time.Time
	spoken   time.Time
	shown    bool
	steps    []string
	// waiting are those that wait for something.
	waiting []*Progress
}

// NewProgress returns a Progress that prints to w.
func NewProgress(w io.Writer) *Progress {
	now := time.Now()
	f, isFile := w.(*os.File)
	return &Progress{page: &page{w: w, terminal: isFile && term.IsTerminal(int(f.Fd())), start: now, spoken: now}}
}

// Together takes steps at the same time. When one fails the others are cancelled, and their errors are joined.
func (p *Progress) Together(ctx context.Context, steps ...func(context.Context, *Progress) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() {
			if err := step(ctx, &Progress{page: p.page}); err != nil {
				if !errors.Is(err, context.Canceled) {
					errs[i] = err
				}
				cancel()
			}
		})
	}
	all.Wait()
	return cmp.Or(errors.Join(errs...), context.Cause(ctx))
}

// Step does something that takes time, between two lines with what it is and how long it took.
func (p *Progress) Step(ctx context.Context, title string, do func(context.Context) error) error {
	p.Say("%s", title)
	p.Waiting("a moment")
	begin := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		p.remind(stop)
	}()
	err := do(ctx)
	close(stop)
	<-stopped
	took := time.Since(begin).Seconds()
	p.Waiting("")
	if err != nil {
		p.Say("  failed after %.1f s", took)
		return err
	}
	p.Say("  done in %.1f s", took)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = append(p.steps, fmt.Sprintf("%s %.1f s", firstWord(title), took))
	return nil
}

// Say prints a line.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(fmt.Sprintf(format, args...))
}

// Block prints text that is meant for the reader as it is, such as the output of a job.
func (p *Progress) Block(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		fmt.Fprintf(p.w, "                %s\n", strings.TrimRight(line, "\r\n"))
	}
	p.spoken = time.Now()
}

// Waiting prints what is being waited for; it replaces the line before. Nothing is waited for with "".
func (p *Progress) Waiting(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	if what == p.what {
		return
	}
	p.what, p.since = what, time.Now()
	p.waiting = slices.DeleteFunc(p.waiting, func(other *Progress) bool { return other == p })
	if what != "" {
		p.waiting = append(p.waiting, p)
	}
	p.erase()
}

// Lines returns a writer that prints each line written to it, as the output of programs is.
func (p *Progress) Lines() io.Writer { return &lines{progress: p} }

// Summary returns how long the steps took and how long all of it took.
func (p *Progress) Summary() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s; all %.1f s", strings.Join(p.steps, ", "), time.Since(p.start).Seconds())
}

// remind shows what is being waited for until stop is closed.
func (p *Progress) remind(stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			p.tick(now)
		}
	}
}

func (p *Progress) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return
	}
	var what []string
	for _, w := range p.waiting {
		what = append(what, fmt.Sprintf("%s (%d s)", w.what, int(now.Sub(w.since).Seconds())))
	}
	text := "  waiting for " + strings.Join(what, ", ")
	switch {
	case p.terminal:
		p.erase()
		line := p.stamp(now) + text
		if utf8.RuneCountInString(line) > width {
			line = string([]rune(line)[:width-1]) + "…"
		}
		fmt.Fprint(p.w, line)
		p.shown = true
	case now.Sub(p.spoken) >= patience:
		p.print(text)
	}
}

func (p *Progress) print(text string) {
	p.erase()
	now := time.Now()
	fmt.Fprintf(p.w, "%s%s\n", p.stamp(now), strings.TrimRight(text, "\n"))
	p.spoken = now
}

func (p *Progress) stamp(now time.Time) string {
	return fmt.Sprintf("[%6.1f s]  ", now.Sub(p.start).Seconds())
}

// erase removes the transient line.
func (p *Progress) erase() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func firstWord(title string) string {
	word, _, _ := strings.Cut(title, ":")
	return strings.ToLower(word)
}

// foreignClock is the time at the beginning of a line of localkube or of images/build.
var foreignClock = regexp.MustCompile(`^(\[ *[0-9.]+s\]|images +[0-9]+ s) +`)

// lines cuts what is written into lines. One program writes to it at a time.
type lines struct {
	progress *Progress
	rest     []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		if text := foreignClock.ReplaceAllString(strings.TrimSpace(string(line)), ""); text != "" {
			l.progress.Say("  %s", text)
		}
	}
}
