// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// rests looks at a cluster in which nothing happens.
func (b *bench) rests() {
	b.seen()
	before, cpu, began := b.spent(), b.process.cpu(), time.Now()
	time.Sleep(*window)
	after, used, took := b.spent(), b.process.cpu()-cpu, time.Since(began)
	api := after.api.since(before.api)
	scenario := fmt.Sprintf("at rest for %s", *window)
	b.hold(scenario, "API writes", api.writes(), 0)
	b.hold(scenario, "Events", api.events(), 0)
	b.hold(scenario, "Slurm writes", after.slurm.since(before.slurm).posts(), 0)
	b.hold(scenario, "bytes of bodies from and to slurmrestd, per minute",
		tally{"bytes": int64(float64(after.bodies-before.bodies) / took.Minutes())}, 10*1024)
	b.tell(scenario, "bytes from and to slurmrestd with all that HTTP adds, per minute", float64(after.wire-before.wire)/took.Minutes(), "")
	b.tell(scenario, "CPU", 100*used.Seconds()/took.Seconds(), "% of a core")
	b.tellMemory(scenario)
}

// changes measures the time from a change in Slurm to its appearance on the pod. Changes come at any time between two questions of the
// Slurm cache.
func (b *bench) changes() {
	var took []time.Duration
	cost := b.cost(func() {
		for i := range *samples {
			name := fmt.Sprintf("w-%d", i*b.size / *samples)
			time.Sleep(rand.N(time.Second))
			began := time.Now()
			if err := b.slurm.Update("root", name, "DRAIN", "bench"); err != nil {
				b.t.Fatal(err)
			}
			seen := b.kubelets.wait(b.t, "a change in Slurm", func(pods map[string]*corev1.Pod) bool { return drained(pods[name]) })
			took = append(took, seen.Sub(began))
			time.Sleep(rand.N(time.Second))
			began = time.Now()
			if err := b.slurm.Update("root", name, "RESUME", ""); err != nil {
				b.t.Fatal(err)
			}
			seen = b.kubelets.wait(b.t, "a change in Slurm", func(pods map[string]*corev1.Pod) bool { return !drained(pods[name]) })
			took = append(took, seen.Sub(began))
		}
	})
	const scenario = "Slurm node changes"
	b.spread(scenario, "change in Slurm to condition of the pod", took)
	// The condition of the pod, its protection, and the counters of the NodeSet.
	b.hold(scenario, fmt.Sprintf("API writes for %d changes", len(took)), cost.api.writes(), 4*len(took))
	b.hold(scenario, "Slurm writes", cost.slurm.posts(), 0)
}

// restarts stops the operator and starts it again: once with nothing to do, and once with a cordon that was made meanwhile.
func (b *bench) restarts() {
	b.process.stop()
	b.age()
	before := b.spent()
	b.process = b.start()
	led := b.led()
	awhile := min(*window, time.Minute)
	time.Sleep(awhile)
	after := b.spent()
	b.tell("restart", "start to leading", led.Sub(b.process.started).Seconds(), "s")
	b.hold("restart", "API writes", after.api.since(before.api).writes(), 0)
	b.hold("restart", "Events", after.api.since(before.api).events(), 1) // who leads now
	b.hold("restart", "Slurm writes", after.slurm.since(before.slurm).posts(), 0)
	b.tell("restart", fmt.Sprintf("Slurm reads until %s later", awhile), float64(after.slurm.since(before.slurm).gets().total()), "")
	b.tellMemory("restart")

	b.process.stop()
	from := len(b.slurm.Writes())
	b.cordon(b.host(0), true)
	b.process = b.start()
	b.tell("restart", "start to first correct action", b.drains(from, 1)["w-0"].Sub(b.process.started).Seconds(), "s")
	b.cordon(b.host(0), false)
	b.wait(serves)
	b.settle()
}

// age lets some minutes pass for the workers, so that nothing is under way any more that the operator which has ended has sent.
func (b *bench) age() {
	b.t.Helper()
	long := workerpod.Opening{At: time.Now().Add(-time.Hour), By: "the former one"}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, slinkyv1beta1.AnnotationOpening, long)
	names := b.kubelets.workers()
	b.all(func(i int) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.server.Namespace, Name: names[i]}}
		return b.user.Patch(b.t.Context(), pod, mergePatch(patch))
	})
}

// led waits until the operator leads and has looked at what there is, and returns when.
func (b *bench) led() time.Time {
	b.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	before, deadline := b.slurm.Counters().Calls["GET nodes"], time.Now().Add(b.longest())
	for now := range tick.C {
		if b.slurm.Counters().Calls["GET nodes"] > before {
			return now
		}
		if now.After(deadline) {
			b.t.Fatal("the operator does not ask Slurm after a restart")
		}
	}
	panic("a ticker does not end")
}

// wait waits until ok returns true for all workers.
func (b *bench) wait(ok func(*corev1.Pod) bool) time.Time {
	b.t.Helper()
	return b.kubelets.wait(b.t, "waiting for all workers", func(pods map[string]*corev1.Pod) bool {
		return workers(pods, exists) == b.size && workers(pods, ok) == b.size
	})
}

// ready waits until the components are ready in their last generation.
func (b *bench) ready() {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(b.longest())
	for now := range tick.C {
		waiting := ""
		for _, obj := range []interface {
			client.Object
			GetConditions() []metav1.Condition
		}{&slinkyv1beta1.Controller{}, &slinkyv1beta1.Accounting{}, &slinkyv1beta1.RestApi{}, &slinkyv1beta1.LoginSet{}} {
			if err := b.user.Get(b.t.Context(), client.ObjectKey{Namespace: b.server.Namespace, Name: "demo"}, obj); err != nil {
				b.t.Fatal(err)
			}
			c := meta.FindStatusCondition(obj.GetConditions(), slinkyv1beta1.ConditionReady)
			if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != obj.GetGeneration() {
				waiting = fmt.Sprintf("%T is not ready: %+v", obj, c)
			}
		}
		if waiting == "" {
			return
		}
		if now.After(deadline) {
			b.t.Fatal(waiting)
		}
	}
}
