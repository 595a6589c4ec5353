// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// updateAll gives all workers another image, a quarter of them at a time, which is the default.
func (b *bench) updateAll() {
	old := map[string]bool{}
	b.kubelets.mu.Lock()
	for _, p := range b.kubelets.pods {
		old[string(p.UID)] = true
	}
	b.kubelets.mu.Unlock()
	var began, ended time.Time
	cost := b.cost(func() {
		began = time.Now()
		b.change(&slinkyv1beta1.NodeSet{}, "w", `{"spec":{"slurmd":{"image":"example.com/slurmd:2"}}}`)
		ended = b.wait(func(p *corev1.Pod) bool { return serves(p) && !old[string(p.UID)] })
	})
	const scenario = "rolling update of all workers"
	b.tell(scenario, "until all are new and idle", ended.Sub(began).Seconds(), "s")
	// The old pod is retired and deleted; the new one is made, and shows that it is idle.
	b.holdAPI(scenario, cost, 5)
	// A worker that comes back on another Kubernetes node has another comment.
	b.hold(scenario, "Slurm writes", cost.slurm.posts(), b.size+calls(cost.took))
	b.tellSlurmReads(scenario, cost.slurm.gets())
	b.tellMemory(scenario)
}

// scaleIn lets half of the workers go.
func (b *bench) scaleIn() {
	left := b.size - b.size/2
	var began, ended time.Time
	cost := b.cost(func() {
		began = time.Now()
		b.change(&slinkyv1beta1.NodeSet{}, "w", fmt.Sprintf(`{"spec":{"replicas":%d}}`, left))
		ended = b.kubelets.wait(b.t, "scaling in", func(pods map[string]*corev1.Pod) bool { return workers(pods, exists) == left })
	})
	const scenario = "scale-in to half"
	b.tell(scenario, "until they are gone", ended.Sub(began).Seconds(), "s")
	// Each of half is marked and deleted.
	b.holdAPI(scenario, cost, 1)
	b.hold(scenario, "Slurm writes", cost.slurm.posts(), calls(cost.took)/2)
	b.tellSlurmReads(scenario, cost.slurm.gets())
}
