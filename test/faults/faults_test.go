// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// fault is one thing that goes wrong at one write.
type fault struct {
	name string
	// lasts is how long it goes on.
	lasts time.Duration
	// only is the server whose writes it is about; empty: both.
	only string
	// single is true if it is about one write, and not about what happens from then on.
	single bool
	// strike returns what becomes of the write at which it happens.
	strike func(w *world, c call) verdict
	// always is true if it is there from the beginning, before any write; then clocks is how the clocks differ.
	always bool
	clocks clocks
	// forgets is true if an operator starts that has lost what the one before had seen.
	forgets bool
	// otherEnd is true if the end may differ from the reference, moreActions if more may be done until then.
	otherEnd, moreActions bool
}

// lie is how long Slurm answers wrongly, and stale how long nothing new is seen.
const (
	lie   = time.Minute
	stale = 30 * time.Second
)

// lost is the fault whose writes are carried out without an answer.
const lost = "reply lost"

// twoLeaders is the fault of an operator that does not know that it no longer leads.
const twoLeaders = "two leaders"

// faults returns all that is tried at every write of every scenario.
func faults() []fault {
	held := func(name string, plurals ...string) fault {
		return fault{name: name, lasts: stale, strike: func(w *world, _ call) verdict {
			w.sim.Hold(plurals...)
			w.after(stale, func() { w.sim.Release() })
			return verdict{}
		}}
	}
	all := []fault{
		{name: "crash", single: true, forgets: true, strike: func(w *world, _ call) verdict { return verdict{then: w.crash} }},
		{name: lost, single: true, strike: func(*world, call) verdict { return verdict{lose: true} }},
		held("stale watches"),
		held("stale pods", "pods"),
		held("stale NodeSets", "nodesets"),
		{name: "lost events", lasts: lie, strike: func(w *world, _ call) verdict {
			w.sim.Hold()
			w.after(lie, func() { w.sim.Expire() })
			return verdict{}
		}},
		{name: twoLeaders, lasts: 15 * time.Second, forgets: true, moreActions: true, strike: func(w *world, _ call) verdict {
			return verdict{then: func() { w.overtake(15 * time.Second) }}
		}},
		{name: "an administrator drains", otherEnd: true, moreActions: true, strike: func(w *world, _ call) verdict { return verdict{then: w.administrator} }},
		{name: "a job starts", single: true, lasts: lie, otherEnd: true, moreActions: true, strike: func(w *world, _ call) verdict {
			w.job() // after the operator has looked, and before what it writes has an effect
			return verdict{}
		}},
		{name: "the dead come back", single: true, lasts: lie, otherEnd: true, moreActions: true, strike: func(w *world, _ call) verdict {
			w.revive()
			return verdict{}
		}},
		{name: "the API server restarts", lasts: lie, strike: func(w *world, c call) verdict {
			w.restartKubernetes()
			return verdict{cut: c.to == "kubernetes"}
		}},
	}
	return slices.Concat(all, refusals(), lies(), skews())
}

// clocks is how far the clocks of others are ahead of the operator's.
type clocks struct{ slurm, kubernetes time.Duration }

// skews are clocks that differ by more than anything of ours waits for.
func skews() []fault {
	const much = 10 * time.Minute
	// Until the operator's clock shows the time at which, by Kubernetes, a worker became ready, it is not believed.
	return []fault{
		{name: "Slurm's clock is ahead", always: true, lasts: lie, clocks: clocks{slurm: much}},
		{name: "Slurm's clock is behind", always: true, lasts: lie, clocks: clocks{slurm: -much}},
		{name: "Kubernetes' clock is ahead", always: true, lasts: lie + much, clocks: clocks{kubernetes: much}},
		{name: "Kubernetes' clock is behind", always: true, lasts: lie, clocks: clocks{kubernetes: -much}},
	}
}

// refusals are errors in answer to a write.
func refusals() []fault {
	// What Slurm refuses is not tried again at once.
	lasts := map[string]time.Duration{"slurm": 5 * time.Minute}
	refuse := func(only, name string, code int, body string) fault {
		return fault{name: name, only: only, single: true, lasts: lasts[only], strike: func(*world, call) verdict { return verdict{refuse: code, body: body} }}
	}
	const (
		status  = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":"`
		trouble = `{"errors":[{"error_number":1,"error":"injected","description":"injected"}],"warnings":[],"meta":{}}`
	)
	return []fault{
		{name: "conflict", only: "kubernetes", single: true, strike: func(w *world, c call) verdict {
			parts := strings.Split(c.path, "/")
			if len(parts) < 2 || !w.sim.Touch(parts[0], namespace, parts[1]) {
				return verdict{} // what is made has no other version
			}
			return verdict{refuse: http.StatusConflict, body: status + `Conflict","code":409}`}
		}},
		refuse("kubernetes", "too many requests", http.StatusTooManyRequests, status+`TooManyRequests","code":429,"details":{"retryAfterSeconds":1}}`),
		refuse("kubernetes", "internal error", http.StatusInternalServerError, status+`InternalError","code":500}`),
		refuse("slurm", "slurmrestd says 500", http.StatusInternalServerError, trouble),
		refuse("slurm", "slurmrestd says 503", http.StatusServiceUnavailable, ""),
		refuse("slurm", "errors with 200", http.StatusOK, trouble),
		{name: "no answer to a write", only: "slurm", single: true, lasts: time.Minute, strike: func(*world, call) verdict { return verdict{hang: true} }},
	}
}

// lies returns what Slurm answers from some write on, for a minute, instead of the truth.
func lies() []fault {
	list := func(name string, f func() *fake.Fault) fault {
		return fault{name: name, lasts: lie, strike: func(w *world, _ call) verdict {
			return verdict{then: func() {
				w.lies(func(r *http.Request) *fake.Fault {
					if listsNodes(r) {
						return f()
					}
					return nil
				})
			}}
		}}
	}
	return []fault{
		list("Slurm lists nothing", func() *fake.Fault { return &fake.Fault{KeepNode: func(string) bool { return false }} }),
		list("Slurm lists a part", func() *fake.Fault {
			return &fake.Fault{KeepNode: func(name string) bool { return !strings.HasSuffix(name, "-2") }}
		}),
		list("Slurm lists errors", func() *fake.Fault { return &fake.Fault{Error: &fake.Error{Number: 1, Text: "injected"}} }),
		list("Slurm says 500", func() *fake.Fault { return &fake.Fault{Status: http.StatusInternalServerError} }),
		list("Slurm says 503", func() *fake.Fault { return &fake.Fault{Status: http.StatusServiceUnavailable} }),
		list("Slurm is silent", func() *fake.Fault { return &fake.Fault{Hold: make(chan struct{})} }),
		{name: "Slurm shows an earlier moment", lasts: stale, moreActions: true, strike: func(w *world, _ call) verdict {
			w.freeze(true)
			w.after(stale, func() { w.freeze(false) })
			return verdict{}
		}},
		{name: "slurmctld restarts", lasts: lie, strike: func(w *world, _ call) verdict { return verdict{then: func() { w.restartSlurm(true, 0) }} }},
		// The loss is believed after five minutes, and what Slurm took and does not show is written again after five more.
		{name: "slurmctld restarts without its state", lasts: 10 * time.Minute, moreActions: true, otherEnd: true, strike: func(w *world, _ call) verdict {
			return verdict{then: func() { w.restartSlurm(false, 30*time.Second) }}
		}},
		// Long enough for the loss to be believed, and for everything that follows from that.
		{name: "slurmctld comes up empty", lasts: 20 * time.Minute, moreActions: true, otherEnd: true, strike: func(w *world, _ call) verdict {
			return verdict{then: func() { w.restartSlurm(false, 12*time.Minute) }}
		}},
	}
}

// after does something some time later, unless the world ends before.
func (w *world) after(d time.Duration, do func()) {
	w.mu.Lock()
	if end := time.Now().Add(d); end.After(w.busy) {
		w.busy = end
	}
	w.mu.Unlock()
	w.running.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-w.ctx.Done():
		case <-timer.C:
			do()
			w.touch()
		}
	})
}

// listsNodes reports whether a request asks for all nodes.
func listsNodes(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/nodes")
}

// lies has Slurm answer wrongly for a while.
func (w *world) lies(f func(*http.Request) *fake.Fault) {
	w.mu.Lock()
	w.lying = time.Now()
	w.mu.Unlock()
	var told atomic.Int64
	w.slurm.SetFault(func(r *http.Request) *fake.Fault {
		found := f(r)
		if found != nil {
			told.Add(1)
		}
		return found
	})
	w.after(lie, func() {
		// Without a Controller, or with a suspended one, Slurm is not asked.
		if c, there := get[slinkyv1beta1.Controller](w, "demo"); told.Load() == 0 && there && !c.Suspended() {
			w.fail("Slurm lies", "nobody has asked")
		}
		w.slurm.SetFault(nil)
		w.honest()
	})
}

func (w *world) honest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lying = time.Time{}
}

// restartSlurm stops slurmctld and starts it half a minute later. Without its state, the slurmds that run continue without
// slurmctld knowing of them; they are restarted some time later.
func (w *world) restartSlurm(keep bool, restarted time.Duration) {
	w.mu.Lock()
	w.lying = time.Now()
	w.mu.Unlock()
	w.slurm.Stop()
	w.after(30*time.Second, func() {
		if !keep {
			w.forget()
		}
		w.slurm.Start(keep)
		w.honest()
		if keep {
			return
		}
		w.after(restarted, func() {
			for _, pod := range w.sim.Objects(podKind) {
				phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
				if isWorker(pod) && phase == "Running" {
					w.register(pod)
				}
			}
		})
	})
}

// forget records the workers that slurmctld, which loses its state, is going to forget.
func (w *world) forget() {
	w.mu.Lock()
	w.emptied = true
	w.mu.Unlock()
	for name := range w.runningWorkers() {
		if _, known := w.slurm.Node(name); known {
			w.mu.Lock()
			w.forgotten[name] = true
			w.mu.Unlock()
		}
	}
}

// restartKubernetes makes the API server unreachable for half a minute.
func (w *world) restartKubernetes() {
	gone := func(gone bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refusing = gone
	}
	gone(true)
	w.sim.Disconnect()
	w.after(30*time.Second, func() { gone(false) })
}

// freeze lets Slurm answer with the last list that it has shown, or no longer.
func (w *world) freeze(frozen bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = frozen
}

// overtake starts a second operator beside the first, which lives on for a while: a lease that was lost unnoticed.
func (w *world) overtake(d time.Duration) {
	w.mu.Lock()
	old := w.processes[len(w.processes)-1]
	w.mu.Unlock()
	w.after(0, w.boot)
	w.after(d, func() {
		old.kill()
		w.replaced <- struct{}{}
	})
}

// administrator drains a node for a reason of his own, and overwrites ours where there is one.
func (w *world) administrator() {
	const reason = "bad disk"
	for _, name := range w.slurm.Names() {
		if !strings.HasSuffix(name, "-1") {
			continue
		}
		w.mu.Lock()
		w.disturbed[name] = time.Now()
		w.mu.Unlock()
		if err := w.slurm.Update("root", name, "DRAIN", reason); err != nil {
			w.fail("an administrator can drain", "%v", err)
		}
	}
}

// revive has the slurmds answer again that slurmctld has given up.
func (w *world) revive() {
	for name, pod := range w.runningWorkers() {
		if status, known := w.slurm.Node(name); known && node.Parse(status.State).Down() == node.Yes {
			w.register(pod)
		}
	}
}

// job lets a job start on every node that takes one.
func (w *world) job() {
	for _, name := range w.slurm.Names() {
		status, _ := w.slurm.Node(name)
		if node.Parse(status.State).Busy() == node.No {
			id := w.slurm.Submit(fake.Job{NodeList: []string{name}, CPUs: 1, Duration: lie})
			w.after(2*lie, func() { w.slurm.Cancel(id) })
		}
	}
}
