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

// host returns the Kubernetes node of a worker.
func (b *bench) host(i int) string {
	b.kubelets.mu.Lock()
	defer b.kubelets.mu.Unlock()
	if pod := b.kubelets.pods[fmt.Sprintf("w-%d", i)]; pod != nil {
		return pod.Spec.NodeName
	}
	return b.kubeNode(i)
}

// cordon does what "kubectl cordon" does with a Kubernetes node, or "kubectl uncordon".
func (b *bench) cordon(node string, on bool) {
	b.t.Helper()
	n := &corev1.Node{}
	n.Name = node
	if err := b.user.Patch(b.t.Context(), n, mergePatch(fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, on))); err != nil {
		b.t.Errorf("cordoning %s: %v", n.Name, err)
	}
}

// drains waits until as many nodes have been drained since that write, and returns when each was.
func (b *bench) drains(from, n int) map[string]time.Time {
	b.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline, at, posts := time.Now().Add(b.longest()), map[string]time.Time{}, -1
	for now := range tick.C {
		b.process.check(b.t)
		if now.After(deadline) {
			b.t.Fatalf("%d of %d nodes are drained", len(at), n)
		}
		if calls := b.slurm.Counters().Calls["POST nodes"]; calls != posts {
			posts = calls
		} else {
			continue // looking is dear, and nothing has come
		}
		writes := b.slurm.Writes()[from:]
		from += len(writes)
		for _, w := range writes {
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
			b.cordon(b.host(i), true)
			took = append(took, b.drains(from, 1)[name].Sub(began))
			b.kubelets.wait(b.t, "showing the drain", func(pods map[string]*corev1.Pod) bool { return drained(pods[name]) })
			b.cordon(b.host(i), false)
			b.wait(serves)
		}
	})
	b.spread(scenario, "cordon to drain", took)
	// Of the pod: it is marked; shows that it is drained, and may be evicted; loses the mark, and is protected; shows that it is not
	// drained. There are two Events, and the NodeSet counts, up to three times on a slow machine.
	b.hold(scenario, fmt.Sprintf("API writes and Events for %d times cordon and uncordon", *samples), cost.api.changes(), 11**samples)
	b.hold(scenario, fmt.Sprintf("Slurm writes for %d times cordon and uncordon", *samples), cost.slurm.posts(), 2**samples)
}

// calls returns how many writes to Slurm may join what takes so long: they leave at most three times a second when they keep
// coming, and more often only at first.
func calls(took time.Duration) int { return 10 + int(4*took.Seconds()) }

// looks returns how often the NodeSet may be looked at, and its status written, during something: a large one is left alone for
// half a second.
func (b *bench) looks(c cost) int {
	pause := min(time.Second, time.Duration(b.size)*500*time.Microsecond)
	return 10 + b.size/50 + int(c.took/max(pause, 100*time.Millisecond))
}

// holdAPI limits the API server's calls of a scenario to so many writes per worker, Events included, and what else there is
// for a NodeSet that is looked at so long. It prints what that cost there.
//
// On a slow machine workers are seen in states that last a moment, each of which is shown: one worker in five may have one more.
func (b *bench) holdAPI(scenario string, c cost, perWorker int) {
	b.t.Helper()
	looks := b.looks(c)
	b.hold(scenario, "API writes and Events", c.api.changes(), perWorker*b.size+b.size/5+looks)
	b.hold(scenario, "Events", c.api.events(), looks)
	// Two write at once, and one gets a conflict.
	b.hold(scenario, "API calls refused", c.refused, b.size/20+10)
	// Looking at a NodeSet takes what the cache has; but while the cache lags, each look asks whether a pod that it lacks has gone.
	b.hold(scenario, "API reads", c.api.reads(), 20+looks)
	b.tell(scenario, "bytes written to the API server, per worker", float64(c.said)/float64(b.size), "")
	b.tell(scenario, "CPU of the operator, per worker", 1000*c.cpu.Seconds()/float64(b.size), "ms")
	b.tell(scenario, "CPU of the API server and etcd, per worker", 1000*c.server.Seconds()/float64(b.size), "ms")
}

// cordonAll cordons all Kubernetes nodes, sixteen at a time, and then none.
func (b *bench) cordonAll() {
	const scenario = "cordon of all nodes"
	var mu sync.Mutex
	var began, ended time.Time
	var at map[string]time.Time
	cordoned := map[string]time.Time{}
	var requests []time.Duration
	cost := b.cost(func() {
		from := len(b.slurm.Writes())
		began = time.Now()
		b.all(func(i int) error {
			now := time.Now()
			b.cordon(b.host(i), true)
			mu.Lock()
			defer mu.Unlock()
			cordoned[fmt.Sprintf("w-%d", i)] = now
			requests = append(requests, time.Since(now))
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
	b.spread(scenario, "request of a cordon", requests)
	b.spread(scenario, "cordon to drain", took)
	b.tell(scenario, "last cordon to last drain", last.Sub(ended).Seconds(), "s")
	b.hold(scenario, "Slurm writes", cost.slurm.posts(), calls(ended.Sub(began)))
	b.tellSlurmReads(scenario, cost.slurm.gets())
	// The mark; and in one write what is shown, and that the pod may be evicted.
	b.holdAPI(scenario, cost, 2)

	cost = b.cost(func() {
		began = time.Now()
		b.all(func(i int) error { b.cordon(b.host(i), false); return nil })
		ended = time.Now()
		last = b.wait(serves)
	})
	b.tell("uncordon of all nodes", "last uncordon to all workers idle", last.Sub(ended).Seconds(), "s")
	b.hold("uncordon of all nodes", "Slurm writes", cost.slurm.posts(), calls(last.Sub(began)))
	// In one write the end of the mark and the protection; and what is shown.
	b.holdAPI("uncordon of all nodes", cost, 2)
}
