// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// cordon does what "kubectl cordon" does, or "kubectl uncordon".
func (b *bench) cordon(i int, on bool) {
	b.t.Helper()
	n := &corev1.Node{}
	n.Name = b.kubeNode(i)
	if err := b.user.Patch(b.t.Context(), n, mergePatch(fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, on))); err != nil {
		b.t.Errorf("cordoning %s: %v", n.Name, err)
	}
}

// drains waits until as many nodes have been drained since that write, and says when each was.
func (b *bench) drains(from, n int) map[string]time.Time {
	b.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(longest)
	for now := range tick.C {
		at := map[string]time.Time{}
		for _, w := range b.slurm.Writes()[from:] {
			if w.State != "DRAIN" {
				continue
			}
			names, err := hostlist.Expand(w.Nodes, 100000)
			if err != nil {
				b.t.Fatal(err)
			}
			for _, name := range names {
				at[name] = w.Time
			}
		}
		if len(at) >= n {
			return at
		}
		b.process.check(b.t)
		if now.After(deadline) {
			b.t.Fatalf("%d of %d nodes are drained", len(at), n)
		}
	}
	panic("a ticker does not end")
}

// cordonOne cordons one Kubernetes node after another.
func (b *bench) cordonOne() {
	const scenario = "cordon of one node"
	var took []time.Duration
	cost := b.cost(func() {
		for i := range *samples {
			name, from, began := fmt.Sprintf("w-%d", i), len(b.slurm.Writes()), time.Now()
			b.cordon(i, true)
			took = append(took, b.drains(from, 1)[name].Sub(began))
			b.kubelets.wait(b.t, "showing the drain", func(pods map[string]*corev1.Pod) bool { return drained(pods[name]) })
			b.cordon(i, false)
			b.wait(serves)
		}
	})
	b.spread(scenario, "cordon to drain", took)
	// Of the pod: it is marked, may be evicted, says that it is drained, loses the mark, is protected, says that it is not
	// drained. The NodeSet counts.
	b.hold(scenario, fmt.Sprintf("API writes for %d times cordon and uncordon", *samples), cost.api.writes(), 9**samples)
	b.hold(scenario, fmt.Sprintf("Slurm writes for %d times cordon and uncordon", *samples), cost.slurm.posts(), 2**samples)
}

// calls are how many writes to Slurm may join what takes so long: they leave at most three times a second when they keep
// coming, and more often only at first.
func calls(took time.Duration) int { return 10 + int(4*took.Seconds()) }

// cordonAll cordons all Kubernetes nodes, sixteen at a time, and then none.
func (b *bench) cordonAll() {
	const scenario = "cordon of all nodes"
	var mu sync.Mutex
	var began, ended time.Time
	var at map[string]time.Time
	cordoned := map[string]time.Time{}
	cost := b.cost(func() {
		from := len(b.slurm.Writes())
		began = time.Now()
		b.all(func(i int) error {
			now := time.Now()
			b.cordon(i, true)
			mu.Lock()
			defer mu.Unlock()
			cordoned[fmt.Sprintf("w-%d", i)] = now
			return nil
		})
		ended = time.Now()
		at = b.drains(from, b.size)
		b.wait(drained)
	})
	var took []time.Duration
	last := ended
	for name, when := range at {
		took = append(took, when.Sub(cordoned[name]))
		if when.After(last) {
			last = when
		}
	}
	b.tell(scenario, "cordoning them", ended.Sub(began).Seconds(), "s")
	b.spread(scenario, "cordon to drain", took)
	b.tell(scenario, "last cordon to last drain", last.Sub(ended).Seconds(), "s")
	b.hold(scenario, "Slurm writes", cost.slurm.posts(), calls(ended.Sub(began)))
	b.tell(scenario, "Slurm reads", float64(cost.slurm.gets().total()), "")
	b.tell(scenario, "CPU", cost.cpu.Seconds(), "s")
	b.hold(scenario, "API writes", cost.api.writes(), 3*b.size+b.size/50+60)

	cost = b.cost(func() {
		began = time.Now()
		b.all(func(i int) error { b.cordon(i, false); return nil })
		ended = time.Now()
		last = b.wait(serves)
	})
	b.tell("uncordon of all nodes", "last uncordon to all workers idle", last.Sub(ended).Seconds(), "s")
	b.hold("uncordon of all nodes", "Slurm writes", cost.slurm.posts(), calls(last.Sub(began)))
	b.hold("uncordon of all nodes", "API writes", cost.api.writes(), 3*b.size+b.size/50+60)
}
