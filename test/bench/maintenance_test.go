// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/health"
)

// announce has a cloud announce that a machine is going to be replaced, or take that back.
func (b *bench) announce(node string, status corev1.ConditionStatus) error {
	n := &corev1.Node{}
	n.Name = node
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q}]}}`, health.DefaultMaintenanceType, status)
	return b.user.Status().Patch(b.t.Context(), n, client.RawPatch(types.StrategicMergePatchType, patch))
}

// announceAll does so for the first n workers, sixteen at a time, and returns when each was.
func (b *bench) announceAll(n int, status corev1.ConditionStatus) map[string]time.Time {
	var mu sync.Mutex
	at := map[string]time.Time{}
	b.all(func(i int) error {
		if i >= n {
			return nil
		}
		now := time.Now()
		err := b.announce(b.host(i), status)
		mu.Lock()
		defer mu.Unlock()
		at[fmt.Sprintf("w-%d", i)] = now
		return err
	})
	return at
}

// maintenance announces for half of the machines at once that they are going to be replaced, and takes that back.
func (b *bench) maintenance() {
	const scenario, end = "maintenance of half of the nodes", "end of that maintenance"
	n := b.size / 2
	var began, ended, last time.Time
	var took []time.Duration
	cost := b.cost(func() {
		from := len(b.slurm.Writes())
		began = time.Now()
		announced := b.announceAll(n, corev1.ConditionTrue)
		ended = time.Now()
		for name, when := range b.drains(from, n) {
			took = append(took, when.Sub(announced[name]))
			if when.After(last) {
				last = when
			}
		}
		b.shows(n)
	})
	b.tell(scenario, "writing the conditions", ended.Sub(began).Seconds(), "s")
	b.spread(scenario, "condition to drain", took)
	b.tell(scenario, "first condition to last drain", last.Sub(began).Seconds(), "s")
	b.hold(scenario, "Slurm writes", cost.slurm.posts(), calls(ended.Sub(began)))
	b.tellSlurmReads(scenario, cost.slurm.gets())
	// In one write what is shown, and that the pod may be evicted.
	b.hold(scenario, "API writes and Events", cost.api.changes(), n+n/5+b.looks(cost))

	cost = b.cost(func() {
		began = time.Now()
		b.announceAll(n, corev1.ConditionFalse)
		ended = time.Now()
		last = b.wait(serves)
	})
	b.tell(end, "last condition to all workers idle", last.Sub(ended).Seconds(), "s")
	b.hold(end, "Slurm writes", cost.slurm.posts(), calls(last.Sub(began)))
	b.hold(end, "API writes and Events", cost.api.changes(), 2*n+n/5+b.looks(cost))
}

// shows waits until as many workers show that they are drained.
func (b *bench) shows(n int) {
	b.kubelets.wait(b.t, "showing the drains", func(pods map[string]*corev1.Pod) bool { return workers(pods, drained) == n })
}
