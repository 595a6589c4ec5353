// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestCommentsOfManyNodesDelayNoDrain(t *testing.T) {
	const nodes = 300
	simulate(t, nodes, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(r *http.Request) *fake.Fault {
			if r.Method == http.MethodPost {
				return &fake.Fault{Latency: 10 * time.Millisecond}
			}
			return nil
		})
		changes := l.hub.subscribe()
		defer changes.Close()
		begin := time.Now()
		var mu sync.Mutex
		told := 0
		for i := range nodes {
			comment := fmt.Sprintf(`{"podName": "w-%d"}`, i)
			l.UpdateLater(t.Context(), fmt.Sprintf("worker-%d", i), Update{Comment: &comment}, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if told++; err != nil {
					t.Error(err)
				}
			})
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("whoever does not wait waited for %s", took)
		}
		after(100 * time.Millisecond)
		begin = time.Now()
		if err := l.Drain(t.Context(), []string{"worker-7"}, "slurm-operator: urgent").Err(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("a drain took %s", took)
		}
		if mu.Lock(); told > nodes/10 {
			t.Errorf("%d comments were written before the drain", told)
		}
		mu.Unlock()
		after(10 * time.Second)
		if told != nodes || s.Counters().Calls["POST nodes"] != nodes+1 {
			t.Errorf("%d comments were written, by %d calls", told, s.Counters().Calls["POST nodes"])
		}
		if n := len(changes.Take()); n != nodes {
			t.Errorf("%d nodes changed", n)
		}
	})
}

func TestWhatIsWrittenLaterIsAnsweredInAnyCase(t *testing.T) {
	s := newSlurm(1)
	l, err := New(key, Config{Endpoint: "http://slurm:6820", Issuer: signed(t, hmacKey)}, Options{Transport: s.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	comment, answers := "c", make(chan error, 3)
	write := func(name string) {
		l.UpdateLater(t.Context(), name, Update{Comment: &comment}, func(err error) { answers <- err })
	}
	write("worker-0") // before the cache runs
	write("a[1-9]")
	if err := <-answers; err == nil {
		t.Error("a name that means several nodes is written")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Run(ctx)
	write("worker-0") // after its end
	for range 2 {
		if err := <-answers; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// An undrain that arrives when nobody expects it any more lets jobs onto a worker that is about to go.
func TestAnUndrainThatCannotLeaveInTimeIsDropped(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(r *http.Request) *fake.Fault {
			if r.Method == http.MethodPost {
				return &fake.Fault{Latency: 20 * time.Second}
			}
			return nil
		})
		drained := make(chan error, 2)
		l.DrainLater(t.Context(), "worker-0", "slurm-operator: slow", func(err error) { drained <- err })
		after(time.Second)
		l.DrainLater(t.Context(), "worker-1", "slurm-operator: slow as well", func(err error) { drained <- err })
		late, soon := make(chan error, 1), make(chan error, 1)
		l.UndrainLater(t.Context(), "worker-2", time.Now().Add(10*time.Second), func(err error) { late <- err })
		l.UndrainLater(t.Context(), "worker-0", time.Now().Add(time.Minute), func(err error) { soon <- err })
		if err := errors.Join(<-drained, <-drained, <-soon); err != nil {
			t.Error(err)
		}
		if err := <-late; !errors.Is(err, ErrLate) {
			t.Errorf("one whose time is over ends with %v", err)
		}
		for _, w := range s.Writes() {
			if w.State == "UNDRAIN" && w.Nodes != "worker-0" {
				t.Errorf("%s is undrained", w.Nodes)
			}
		}
	})
}

func TestAnUndrainIsGivenUpThatIsNotAnswered(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(r *http.Request) *fake.Fault {
			if r.Method == http.MethodPost {
				return &fake.Fault{Latency: 10 * time.Minute}
			}
			return nil
		})
		begin, answer := time.Now(), make(chan error, 1)
		l.UndrainLater(t.Context(), "worker-0", begin.Add(time.Second), func(err error) { answer <- err })
		err := <-answer
		if took := time.Since(begin); err == nil || errors.Is(err, ErrClosed) || took > callTimeout+time.Second {
			t.Errorf("after %s it ends with %v", took, err)
		}
	})
}

// An administrator drains a node just before we do, or just before we end our drain: Slurm would forget the reason.
func TestWhatSomebodyElseHasJustSaidIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		ours  string // the drain that is there before
		state string // what somebody else makes of the node then
		write func(l *Cache, told func(error))
		held  bool
	}{
		"a drain":                                 {"", "DRAIN", func(l *Cache, told func(error)) { l.DrainLater(t.Context(), "worker-0", "slurm-operator: gone", told) }, true},
		"the end of ours":                         {"slurm-operator: x", "DRAIN", func(l *Cache, told func(error)) { l.UndrainLater(t.Context(), "worker-0", time.Time{}, told) }, true},
		"a node that is to be used again":         {"", "DOWN", func(l *Cache, told func(error)) { l.ReviveLater(t.Context(), "worker-0", time.Time{}, told) }, true},
		"a drain of a node that was set down":     {"", "DOWN", func(l *Cache, told func(error)) { l.DrainLater(t.Context(), "worker-0", "slurm-operator: gone", told) }, false},
		"a drain of ours when nobody says a word": {"slurm-operator: x", "", func(l *Cache, told func(error)) { l.DrainLater(t.Context(), "worker-0", "slurm-operator: gone", told) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
				if test.ours != "" {
					if err := s.Update("slurm", "worker-0", "DRAIN", test.ours); err != nil {
						t.Fatal(err)
					}
				}
				after(time.Minute)
				if test.state != "" {
					if err := s.Update("root", "worker-0", test.state, "bad disk"); err != nil {
						t.Fatal(err)
					}
				}
				answer := make(chan error, 1)
				test.write(l, func(err error) { answer <- err })
				err := <-answer
				n, _ := s.Node("worker-0")
				switch {
				case test.held && (!errors.Is(err, ErrHeld) || n.Reason != "bad disk"):
					t.Errorf("the reason is %q, and the write ended with %v", n.Reason, err)
				case !test.held && (err != nil || n.Reason != "slurm-operator: gone"):
					t.Errorf("the reason is %q, and the write ended with %v", n.Reason, err)
				}
			})
		})
	}
}

// The drain for a replacement replaces the drain of the check that the machine is replaced for, and no other.
func TestTheDrainOfACheckBecomesThatOfAReplacement(t *testing.T) {
	const reason = "[hardware_problem] gpu: Xid 79"
	for _, test := range []struct {
		name, said string
		held       bool
	}{
		{"the drain of the check that the reason names becomes that of a replacement", reason, false},
		{"the drain of another check stays", reason + " again", true},
		{"the drain of a person stays", "bad disk", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
				if err := s.Update("root", "worker-0", "DRAIN", test.said); err != nil {
					t.Fatal(err)
				}
				answer := make(chan error, 1)
				want := node.ReplacementAfterCheck(reason)
				l.DrainLater(t.Context(), "worker-0", want, func(err error) { answer <- err })
				err := <-answer
				if n, _ := s.Node("worker-0"); errors.Is(err, ErrHeld) != test.held || !test.held && err != nil || (n.Reason == want) == test.held {
					t.Errorf("the node is %v, %q, and the write ended with %v", n.State, n.Reason, err)
				}
			})
		})
	}
}

// A drain of somebody else ends only while it is the one that the comment of the node notes.
func TestADrainThatTheCommentNotesIsEnded(t *testing.T) {
	const reason = "[node_problem] gpu: Xid 79"
	for name, test := range map[string]struct {
		between func(s *fake.Slurm) error
		write   func(l *Cache, done func(error))
		held    bool
	}{
		"the drain that was noted is ended":             {nil, noted, false},
		"a drain is not ended by who does not ask that": {nil, func(l *Cache, done func(error)) { l.UndrainLater(context.Background(), "worker-0", time.Time{}, done) }, true},
		"another drain is not ended":                    {func(s *fake.Slurm) error { return s.Update("root", "worker-0", "DRAIN", "bad disk") }, noted, true},
		"a newer drain for the same reason is not ended": {func(s *fake.Slurm) error {
			return errors.Join(s.Update("root", "worker-0", "DRAIN", "bad disk"), s.Update("root", "worker-0", "DRAIN", reason))
		}, noted, true},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
				if err := s.Update("root", "worker-0", "DRAIN", reason); err != nil {
					t.Fatal(err)
				}
				after(time.Minute)
				n, _ := l.Snapshot().Node("worker-0")
				text := node.Comment{PodName: "worker-0"}.Noting(ReasonOf(n), "m").String()
				answer := make(chan error, 1)
				l.UpdateLater(t.Context(), "worker-0", Update{Comment: &text}, func(err error) { answer <- err })
				if err := <-answer; err != nil {
					t.Fatal(err)
				}
				if test.between != nil {
					if err := test.between(s); err != nil {
						t.Fatal(err)
					}
				}
				test.write(l, func(err error) { answer <- err })
				err := <-answer
				if status, _ := s.Node("worker-0"); errors.Is(err, ErrHeld) != test.held || !test.held && err != nil || slices.Contains(status.State, "DRAIN") != test.held {
					t.Errorf("the node is %v, %q, and the write ended with %v", status.State, status.Reason, err)
				}
			})
		})
	}
}

func noted(l *Cache, done func(error)) {
	l.UndrainNotedLater(context.Background(), "worker-0", time.Time{}, done)
}

// Lists are long, we have written a moment ago, and there is no room for another one: a few nodes are asked about all the same.
func TestAFewNodesAreAskedAboutWithoutAList(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.HasSuffix(r.URL.Path, "/nodes/") {
				return &fake.Fault{Latency: 500 * time.Millisecond}
			}
			return nil
		})
		for range 60 { // what was saved up for lists is used up
			if failures := l.Drain(t.Context(), []string{"worker-1"}, "slurm-operator: "+time.Now().String()); failures != nil {
				t.Fatal(failures)
			}
			after(time.Second)
		}
		if err := s.Update("root", "worker-0", "DRAIN", "bad disk"); err != nil {
			t.Fatal(err)
		}
		failures := l.Drain(t.Context(), []string{"worker-0", "worker-1"}, "slurm-operator: gone")
		n, _ := s.Node("worker-0")
		if len(failures) != 1 || !errors.Is(failures["worker-0"], ErrHeld) || n.Reason != "bad disk" {
			t.Errorf("the reason is %q, and the drain ended with %v", n.Reason, failures)
		}
	})
}

// A slurmctld that does not answer keeps a drain waiting once, and not for each node.
func TestADrainLeavesWithoutAnAnswer(t *testing.T) {
	simulate(t, 4, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(r *http.Request) *fake.Fault {
			if r.Method == http.MethodGet {
				return &fake.Fault{Latency: 10 * time.Minute}
			}
			return nil
		})
		began := time.Now()
		failures := l.Drain(t.Context(), []string{"worker-0", "worker-1", "worker-2", "worker-3"}, "slurm-operator: gone")
		if took := time.Since(began); failures != nil || took > 2*rest.ListTimeout(0, 0, callTimeout) {
			t.Errorf("after %s it ends with %v", took, failures)
		}
		n, _ := s.Node("worker-3")
		if n.Reason != "slurm-operator: gone" {
			t.Errorf("the node is %+v", n)
		}
	})
}
