// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jailedconfig

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// keeper is a slurmrestd that keeps so many requests open, and answers all others at once. listed is how often states of its jobs were
// asked for.
type keeper struct{ keeps, closed, jobs, listed int }

func (k *keeper) Nodes(ctx context.Context, _ time.Time) (rest.NodeList, error) {
	if k.keeps == 0 {
		return rest.NodeList{}, nil
	}
	k.keeps--
	<-ctx.Done()
	return rest.NodeList{}, ctx.Err()
}

func (k *keeper) Close() { k.closed++ }

func (*keeper) Reconfigure(context.Context) error { return nil }

func (k *keeper) Diag(context.Context) (rest.Diag, error) { return rest.Diag{JobsPending: k.jobs}, nil }

func (k *keeper) JobStates(context.Context, func(rest.JobState) bool) ([]rest.JobState, error) {
	k.listed++
	return nil, nil
}

func (*keeper) Job(context.Context, int64) (rest.JobRecord, error) { return rest.JobRecord{}, nil }

func TestARequestThatSlurmrestdKeepsIsGivenUpAndMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reconciler{waiting: waiting{rounds: map[string]*round{}}}
		slurm := &keeper{keeps: 2}
		for _, want := range []time.Duration{5 * time.Second, 10 * time.Second, 0} {
			began := time.Now()
			if _, err := r.nodes(t.Context(), slurm); (err != nil) != (want > 0) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a list ended with error %v", err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("a list was waited for for %s, want %s", took, want)
			}
		}
		if got := r.waiting.listTimeout(); got != 5*time.Second {
			t.Errorf("after an answer, the next list is waited for for %s, want 5 s", got)
		}
	})
}

// slurmrestd has ten connections for all clients by default, and keeps an idle one for a minute and a half.
func TestEachLookAtSlurmGivesItsConnectionsBack(t *testing.T) {
	slurm := &keeper{}
	r := &reconciler{waiting: waiting{rounds: map[string]*round{}}, Options: Options{
		Slurm: func(context.Context) (Slurm, error) { return slurm, nil }, Wait: time.Minute, Poll: time.Second, Clock: clock.RealClock{},
	}}
	for range 2 { // one has the configuration reread, the other one looks whether it was
		if _, _, err := r.reconfigure(t.Context(), "group"); err != nil {
			t.Fatal(err)
		}
	}
	if slurm.closed != 2 {
		t.Errorf("connections were given back %d times, want 2", slurm.closed)
	}
}

func TestWithManyJobsNobodyIsAskedWhomTheyName(t *testing.T) {
	for jobs, want := range map[int]int{maxJobsListed: 1, maxJobsListed + 1: 0} {
		slurm := &keeper{jobs: jobs}
		if nodes, err := endangered(t.Context(), slurm, rest.NodeList{}); err != nil || len(nodes) > 0 || slurm.listed != want {
			t.Errorf("with %d jobs their states were asked for %d times, want %d; %v, %v", jobs, slurm.listed, want, nodes, err)
		}
	}
}

// restarted is a Slurm with one slurmd, which starts anew whenever it is to reread its configuration. Its time has whole seconds.
type restarted struct {
	keeper
	started time.Time
}

func (r *restarted) Nodes(context.Context, time.Time) (rest.NodeList, error) {
	return rest.NodeList{Nodes: []*rest.Node{{Name: "w-0", State: []string{"IDLE"}, SlurmdTime: r.started}}}, nil
}

func (r *restarted) Reconfigure(context.Context) error {
	r.started = time.Now().Truncate(time.Second)
	return nil
}

func TestARereadingInTheSecondOfAnotherOneIsSeenWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slurm := &restarted{started: time.Now().Truncate(time.Second)} // somebody else has just had it reread
		r := &reconciler{waiting: waiting{rounds: map[string]*round{}}, Options: Options{
			Slurm: func(context.Context) (Slurm, error) { return slurm, nil }, Wait: 5 * time.Minute, Poll: 10 * time.Second, Clock: clock.RealClock{},
		}}
		began := time.Now()
		for {
			again, waits, err := r.reconfigure(t.Context(), "group")
			if err != nil {
				t.Fatal(err)
			}
			if waits == "" {
				break
			}
			time.Sleep(again)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
