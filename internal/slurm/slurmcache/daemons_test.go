// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// loaded is settled when slurmctld has loaded a parameter.
func loaded(parameter string) func(Daemons) bool {
	return func(d Daemons) bool { return slices.Contains(d.Parameters, parameter) }
}

func TestSlurmctldIsAskedOnlyWhileSomebodyWaits(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		changes := l.hub.subscribe()
		defer changes.Close()
		after(time.Minute)
		if n := s.Counters().Calls["GET conf"]; n > 0 {
			t.Errorf("nobody wants to know, and it was asked %d times", n)
		}
		s.Load("a=1")
		l.Attend(Interest{Settled: loaded("a=2")})
		after(time.Second)
		if d := l.Daemons(); !d.Loaded || d.Release != "26.05.5" || !slices.Equal(d.Parameters, []string{"a=1"}) || len(d.Controllers) != 1 {
			t.Errorf("%+v", d)
		}
		if got := taken(changes); got != "main:/slurmctld" {
			t.Errorf("changes: %q", got)
		}
		after(10 * time.Second)
		s.Load("a=2")
		after(time.Second)
		if d := l.Daemons(); !slices.Equal(d.Parameters, []string{"a=2"}) {
			t.Errorf("a second later it is %+v", d)
		}
		if got := taken(changes); got != "main:/slurmctld" {
			t.Errorf("changes: %q", got)
		}
		s.ResetCounters()
		l.Attend(Interest{Settled: loaded("a=2")})
		after(10 * time.Minute)
		if n := s.Counters().Calls["GET conf"]; n > 0 {
			t.Errorf("everything is settled, and it was asked %d times", n)
		}
	})
}

func TestABusySlurmrestdTellsWithinAMinuteOfTheNextConfigurationThatIsLoaded(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		slow(s)
		for _, parameter := range []string{"a=1", "a=2", "a=3"} {
			l.Attend(Interest{Settled: loaded(parameter)})
			after(5 * time.Second)
			s.Load(parameter)
			after(40 * time.Second)
			if d := l.Daemons(); !slices.Equal(d.Parameters, []string{parameter}) {
				t.Errorf("40 seconds after it has loaded %s: %+v", parameter, d)
			}
		}
	})
}

func TestFirstAnswersThatWaitedForAStartingSlurmctldKeepNobodyFromAskingAgain(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.SetFault(func(*http.Request) *fake.Fault { return &fake.Fault{Latency: 2 * time.Second} })
		l.Attend(Interest{Settled: func(Daemons) bool { return true }, Watch: true})
		after(3 * time.Second)
		s.SetFault(nil)
		after(10 * time.Second)
		s.Load("a=1")
		after(30 * time.Second)
		if d := l.Daemons(); !slices.Equal(d.Parameters, []string{"a=1"}) {
			t.Errorf("half a minute after slurmctld has loaded it: %+v", d)
		}
	})
}

func TestSlurmctldIsAskedAgainWhenItComesBack(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		s.Load("a=1")
		l.Attend(Interest{Settled: loaded("a=1")})
		after(time.Second)
		s.Stop()
		after(30 * time.Second)
		if d := l.Daemons(); d.Loaded || d.Why != "no slurmctld answers" || d.Release == "" {
			t.Errorf("while it is away: %+v", d)
		}
		s.Load("a=0")
		s.Start(true)
		after(20 * time.Second)
		if d := l.Daemons(); !d.Loaded || !slices.Equal(d.Parameters, []string{"a=0"}) {
			t.Errorf("when it is back: %+v", d)
		}
	})
}

func TestFailoverIsSeenAndAllIsListedAgain(t *testing.T) {
	simulate(t, 3, func(t *testing.T, s *fake.Slurm, l *Cache) {
		const up, away = "No error", "Unable to contact slurm controller (connect failure)"
		s.SetControllers(fake.Controller{Hostname: "c-0", Status: up}, fake.Controller{Hostname: "c-1", Status: up})
		l.Attend(Interest{Settled: func(Daemons) bool { return true }, Watch: true})
		after(35 * time.Second)
		before := l.Snapshot().Listed
		s.SetControllers(fake.Controller{Hostname: "c-0", Status: away}, fake.Controller{Hostname: "c-1", Status: up})
		after(3 * time.Second)
		want := []rest.Controller{{Hostname: "c-0", Primary: true, Status: away}, {Hostname: "c-1", Responding: true, Status: up}}
		if diff := cmp.Diff(want, l.Daemons().Controllers); diff != "" {
			t.Error(diff)
		}
		if got := l.Snapshot().Listed; !got.After(before) {
			t.Errorf("the last list is of %s ago", time.Since(got))
		}
	})
}

// While one of two slurmctlds is away, an answer waits for it. That is no work of slurmrestd, and its return must not go unnoticed
// for two hundred times as long.
func TestTheReturnOfASlurmctldIsSeenSoon(t *testing.T) {
	simulate(t, 1, func(t *testing.T, s *fake.Slurm, l *Cache) {
		const up, away = "No error", "Connection timed out"
		s.SetControllers(fake.Controller{Hostname: "c-0", Status: up}, fake.Controller{Hostname: "c-1", Status: up})
		l.Attend(Interest{Settled: func(Daemons) bool { return true }, Watch: true})
		after(3 * time.Second)
		s.SetControllers(fake.Controller{Hostname: "c-0", Status: away}, fake.Controller{Hostname: "c-1", Status: up})
		s.SetFault(func(r *http.Request) *fake.Fault {
			if strings.Contains(r.URL.Path, "/ping/") {
				return &fake.Fault{Latency: 2 * time.Second}
			}
			return nil
		})
		after(time.Minute)
		if n := s.Counters().Calls["GET ping"]; n < 10 {
			t.Errorf("while it is away, it was asked for %d times", n)
		}
		s.SetFault(nil)
		s.SetControllers(fake.Controller{Hostname: "c-0", Status: up}, fake.Controller{Hostname: "c-1", Status: up})
		after(5 * time.Second)
		if c := l.Daemons().Controllers; len(c) != 2 || !c[0].Responding {
			t.Errorf("five seconds later it is %+v", c)
		}
	})
}

func TestAnOldSlurmrestdDoesNotTellTheConfiguration(t *testing.T) {
	s := fake.New(fake.Options{Release: fake.Slurm2411})
	client, err := rest.NewClient("http://slurm:6820", signed(t, hmacKey), rest.Options{Transport: s.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	d, err := askSlurmctlds(t.Context(), client, time.Now())
	if err != nil || d.Loaded || d.Release != "24.11.5" || d.Why != "slurmrestd 24.11.5 does not tell what slurmctld has loaded" {
		t.Errorf("%+v, %v", d, err)
	}
}
