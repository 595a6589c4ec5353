// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcache

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// parts are what the parts of a cache share, without the cache.
type parts struct {
	connection *connection
	view       *view
	load       *loadLimit
	done       chan struct{}
	published  []string
}

// alone runs a test in synthetic time, with the connection to a fake Slurm and no cache.
func alone(t *testing.T, nodes int, test func(t *testing.T, s *fake.Slurm, p *parts)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSlurm(nodes)
		p := &parts{connection: &connection{}, view: newView(clock.RealClock{}), load: &loadLimit{}, done: make(chan struct{})}
		client, err := rest.NewClient("http://slurm:6820", signed(t, hmacKey), rest.Options{Transport: s.Transport(), Observe: p.connection.worked})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		p.connection.replace("http://slurm:6820", client)
		test(t, s, p)
	})
}

func (p *parts) publish(nodes ...string) { p.published = append(p.published, nodes...) }

func TestANodePollerAloneFollowsTheNodes(t *testing.T) {
	alone(t, 2, func(t *testing.T, s *fake.Slurm, p *parts) {
		answers, changes := 0, 0
		poller := newNodePoller(time.Second, p.connection, p.view, p.load, p.done)
		poller.publish, poller.answered, poller.trustChanged = p.publish, func() { answers++ }, func() { changes++ }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); poller.run(ctx) }()
		after(5 * time.Second)
		s.Register(fake.Node{Name: "another"})
		after(5 * time.Second)
		s.Stop()
		after(30 * time.Second)
		cancel()
		<-ended
		if want := []string{"worker-0", "worker-1", "", "another", ""}; !slices.Equal(p.published, want) {
			t.Errorf("it told of %q, want %q", p.published, want)
		}
		if answers < 9 || answers > 11 || changes != 2 {
			t.Errorf("it told of %d answers within ten seconds, and of %d changes of the trust", answers, changes)
		}
		if got := p.view.snapshot(); got.Trust != Stale || got.Len() != 3 {
			t.Errorf("the snapshot is %s with %d nodes", got.Trust, got.Len())
		}
	})
}

func TestAJobFollowerAloneListsJobsOfWantedNodes(t *testing.T) {
	alone(t, 2, func(t *testing.T, s *fake.Slurm, p *parts) {
		poller := newNodePoller(time.Second, p.connection, p.view, p.load, p.done)
		poller.publish, poller.answered, poller.trustChanged = func(...string) {}, func() {}, func() {}
		follower := newJobFollower(p.connection, p.view, p.load, p.publish)
		job := s.Submit(fake.Job{NodeList: []string{"worker-1"}})
		if err := poller.poll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		follower.poll(t.Context())
		if calls := s.Counters().Calls["GET jobs"]; calls != 0 {
			t.Errorf("nobody wants jobs, and %d lists are asked for", calls)
		}
		follower.want("somebody", []string{"worker-1"})
		follower.poll(t.Context())
		jobs, known := p.view.snapshot().Jobs("worker-1")
		if len(jobs) != 1 || jobs[0].ID != job {
			t.Errorf("the jobs of worker-1 are %v, %s", jobs, known)
		}
		if !slices.Equal(p.published, []string{"worker-1"}) {
			t.Errorf("it told of %q", p.published)
		}
	})
}

// A lister answers a writer that asks for the nodes with changes that somebody has made meanwhile.
type lister struct {
	view  *view
	lists []rest.Node
	soon  bool
	asked int
	pokes int
}

func (l *lister) ask(context.Context, bool) error {
	l.asked++
	l.view.swap(func(*Snapshot) *Snapshot { return NewSnapshot(time.Now(), Fresh, l.lists...) })
	return nil
}
func (l *lister) answersSoon(time.Time) bool              { return l.soon }
func (l *lister) expectWithout(context.Context, []string) {}
func (l *lister) poke()                                   { l.pokes++ }

func TestAWriterAloneLeavesOutWhatSomebodyElseHolds(t *testing.T) {
	for name, soon := range map[string]bool{"when the list is short": true, "by the last list when it is long": false} {
		t.Run(name, func(t *testing.T) {
			alone(t, 4, func(t *testing.T, s *fake.Slurm, p *parts) {
				idle := []rest.Node{{Name: "worker-0", State: []string{"IDLE"}}, {Name: "worker-1", State: []string{"IDLE"}}, {Name: "worker-2", State: []string{"IDLE"}}}
				p.view.swap(func(*Snapshot) *Snapshot { return NewSnapshot(time.Now(), Fresh, idle...) })
				held := slices.Clone(idle)
				held[1] = rest.Node{Name: "worker-1", State: []string{"IDLE", "DRAIN"}, Reason: "bad disk"}
				nodes := &lister{view: p.view, lists: held, soon: soon}
				w := newWriter(Options{}.withDefaults(), p.connection, p.view, nodes, p.load, p.done)
				called := 0
				w.publish, w.requested, w.batched = p.publish, func() {}, func(int) { called++ }
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); w.runBatchers(ctx) }()
				failures := w.Drain(t.Context(), []string{"worker-0", "worker-1", "worker-2"}, "slurm-operator: r")
				cancel()
				<-ended
				want := map[bool]string{true: "worker-[0,2]", false: "worker-[0-2]"}[soon]
				if writes := s.Writes(); called != 1 || len(writes) != 1 || writes[0].Nodes != want {
					t.Errorf("it wrote %v in %d calls, want %s", writes, called, want)
				}
				if (failures["worker-1"] != nil) != soon || nodes.asked != map[bool]int{true: 1}[soon] || nodes.pokes == 0 {
					t.Errorf("failures %v after asking %d times and %d pokes", failures, nodes.asked, nodes.pokes)
				}
			})
		})
	}
}
