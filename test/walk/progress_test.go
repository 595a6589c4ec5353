// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plain removes the times from what was printed.
func plain(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if after, timed := strings.CutPrefix(line, "["); timed {
			_, line, _ = strings.Cut(after, "]  ")
		}
		line, _, _ = strings.Cut(line, " in 0.")
		line, _, _ = strings.Cut(line, " after 0.")
		out = append(out, line)
	}
	return out
}

func TestProgressPrintsPlainLinesWithoutATerminal(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b)
	err := p.Step(t.Context(), "Kubernetes: a local one", func(context.Context) error {
		p.Waiting("the nodes")
		fmt.Fprint(p.Lines(), "[   1.0s] apiserver ready\n\nimages   12 s  building a\nunfinished")
		p.Block("a job's\noutput\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no")
	err = p.Step(t.Context(), "Images: all", func(context.Context) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("Step returned %v, not the error of what it did", err)
	}
	want := []string{
		"Kubernetes: a local one", "  apiserver ready", "  building a", "                a job's", "                output", "  done",
		"Images: all", "  failed",
	}
	if diff := cmp.Diff(want, plain(t, b.String())); diff != "" {
		t.Errorf("printed lines differ (-want +got):\n%s", diff)
	}
	if s := p.Summary(); !strings.HasPrefix(s, "kubernetes 0.") || strings.Contains(s, "images") {
		t.Errorf("the summary is %q: it has the steps that were done", s)
	}
}

func TestProgressRemindsOfWhatItWaitsFor(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b)
	p.Waiting("a miracle")
	for _, after := range []time.Duration{time.Second, patience + time.Second, patience + 2*time.Second} {
		p.tick(p.start.Add(after))
	}
	if got := plain(t, b.String()); len(got) == 0 || !strings.HasPrefix(got[0], "  waiting for a miracle (") {
		t.Errorf("it printed %q", got)
	}
}

func TestStepsThatAreTakenTogetherAreOnOnePage(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b)
	both := make(chan struct{}, 2)
	step := func(title, what string) func(context.Context, *Progress) error {
		return func(ctx context.Context, p *Progress) error {
			return p.Step(ctx, title, func(context.Context) error {
				p.Waiting("%s", what)
				both <- struct{}{}
				for len(both) < 2 {
					runtime.Gosched()
				}
				p.tick(p.start.Add(patience + time.Second))
				return nil
			})
		}
	}
	if err := p.Together(t.Context(), step("Kubernetes: one", "the nodes"), step("Images: all", "the images")); err != nil {
		t.Fatal(err)
	}
	if s := p.Summary(); !strings.Contains(s, "kubernetes 0.") || !strings.Contains(s, "images 0.") {
		t.Errorf("the summary is %q: it has both steps", s)
	}
	reminder := regexp.MustCompile(`waiting for the (nodes \(\d+ s\), the images|images \(\d+ s\), the nodes) \(\d+ s\)`)
	if out := b.String(); !reminder.MatchString(out) {
		t.Errorf("no line tells that both are being waited for:\n%s", out)
	}
}

func TestAStepThatFailsEndsThoseThatAreTakenWithIt(t *testing.T) {
	failure := errors.New("no")
	err := NewProgress(io.Discard).Together(t.Context(),
		func(context.Context, *Progress) error { return failure },
		func(ctx context.Context, _ *Progress) error {
			<-ctx.Done()
			return fmt.Errorf("waiting: %w", ctx.Err())
		})
	if diff := cmp.Diff("no", fmt.Sprint(err)); diff != "" {
		t.Errorf("the error (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = NewProgress(io.Discard).Together(ctx, func(ctx context.Context, _ *Progress) error { return ctx.Err() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted steps gave %v", err)
	}
}

func TestPollSaysWhatItWaitedForAndWhatTheLastCheckSaid(t *testing.T) {
	calls := 0
	err := Poll(t.Context(), time.Minute, time.Millisecond, "luck", func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("Poll returned %v after %d calls, not nil after 3", err, calls)
	}
	err = Poll(t.Context(), 20*time.Millisecond, time.Millisecond, "luck", func(ctx context.Context) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return io.ErrUnexpectedEOF
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "waiting for luck: not within 20ms") {
		t.Errorf("Poll returned %v", err)
	}
}

func TestManifestsAreReadDocumentByDocument(t *testing.T) {
	m, err := ParseManifest([]byte("# nothing\n---\nkind: A\nmetadata: {name: a}\n---\n---\nkind: B\nspec: {n: 1}\n"))
	if err != nil || len(m) != 2 {
		t.Fatalf("parsing gave %v, %v", m, err)
	}
	b, err := m.In("here").Only("B")
	if err != nil || b.GetNamespace() != "here" {
		t.Errorf("Only gave %v, %v", b, err)
	}
	if _, err := m.Only("C"); err == nil {
		t.Error("there is a C")
	}
	if _, err := ParseManifest([]byte("a: b: c")); err == nil {
		t.Error("what is not YAML was parsed")
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	b := &tail{limit: 5}
	for _, s := range []string{"abc", "def", "gh\n"} {
		fmt.Fprint(b, s)
	}
	if b.String() != "efgh" {
		t.Errorf("it kept %q", b)
	}
}
