// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter/rebooterplan"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// host is a Kubernetes node in a random world, with the rebooter there.
type host struct {
	node *corev1.Node
	boot int
	// stuck is a process of a job that could not be ended: in this boot, of this worker; nil for none.
	stuck *pod
	// cordon is an administrator's own.
	cordon   bool
	rebooter health.Rebooter
	// rights is true if the rebooter may do what it has to.
	rights    bool
	evictions map[types.UID]rebooterplan.Attempt
	reboot    rebooterplan.Attempt
}

// pod is a worker, with what Slurm has on its node.
type pod struct {
	name    string
	uid     int
	on      *host // nil while it waits for one
	made    time.Time
	evicted bool
	drain   bool
	reason  node.Reason
	job     bool
	// silent is true if Slurm does not answer.
	silent bool
	// persons is true if the drain is a person's.
	persons bool
}

type world struct {
	t     *rapid.T
	now   time.Time
	hosts []*host
	pods  []*pod
}

var watchedReboots = health.Conditions{RebootDegraded: true}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: noon}
	for i := range rapid.IntRange(1, 3).Draw(t, "machines") {
		n := kubernetesNode(nil)
		n.Name = fmt.Sprintf("node-%d", i)
		h := &host{node: n, rights: true, rebooter: health.Rebooter{Exists: true, Ready: noon.Add(-time.Hour)}}
		h.forget()
		w.hosts = append(w.hosts, h)
		for j := range rapid.IntRange(1, 2).Draw(t, "workers") {
			w.pods = append(w.pods, &pod{name: fmt.Sprintf("w-%d-%d", i, j), on: h, made: noon.Add(-time.Hour)})
		}
	}
	return w
}

// forget starts the rebooter anew.
func (h *host) forget() {
	h.evictions, h.reboot = map[types.UID]rebooterplan.Attempt{}, rebooterplan.Attempt{}
}

// restart is a reboot of the machine.
func (h *host) restart() { h.boot++; h.stuck = nil; h.forget() }

func (p *pod) state() node.State {
	words := []string{"IDLE"}
	if p.job {
		words[0] = "ALLOCATED"
	}
	if p.drain {
		words = append(words, "DRAIN")
	}
	return node.Parse(words)
}

func (p *pod) id() types.UID { return types.UID(fmt.Sprint(p.name, "-", p.uid)) }

// protected is what the worker engine has put on the pod.
func (p *pod) protected() bool { return !p.drain || p.job }

func (w *world) podsOn(h *host) (out []*pod) {
	for _, p := range w.pods {
		if p.on == h {
			out = append(out, p)
		}
	}
	return out
}

// decide has one pass go over a Kubernetes node.
func (w *world) decide(h *host) {
	facts := health.Node{
		Now: w.now, Reboots: true, Degraded: health.ConditionOf(h.node, health.NodeDegraded), Reboot: health.ConditionOf(h.node, health.NodeReboot),
		Rebooter: h.rebooter,
	}
	for _, other := range w.hosts {
		if other != h {
			facts.Others.Add(other.node)
		}
	}
	for _, p := range w.podsOn(h) {
		seen := health.Worker{Slurm: p.name, Created: p.made, Protected: p.protected(), Known: node.Unknown}
		if !p.silent {
			seen.Known, seen.State, seen.Reason, seen.Jobless = node.Yes, p.state(), p.reason, node.AnswerOf(!p.job)
		}
		facts.Workers = append(facts.Workers, seen)
	}
	step := health.Decide(facts)
	if !step.Writes() {
		return
	}
	for _, c := range step.Written(h.node, w.now) {
		h.node.Status.Conditions = slices.DeleteFunc(h.node.Status.Conditions, func(has corev1.NodeCondition) bool { return has.Type == c.Type })
		h.node.Status.Conditions = append(h.node.Status.Conditions, c)
	}
	if n := len(slices.DeleteFunc(slices.Clone(w.hosts), func(h *host) bool { return !degraded(h) })); n > 1 {
		w.t.Fatalf("%d of %d nodes are degraded at once", n, len(w.hosts))
	}
}

func degraded(h *host) bool {
	return health.ConditionOf(h.node, health.NodeDegraded).Status == corev1.ConditionTrue
}

// engine has the engine of workers look at one.
func (w *world) engine(p *pod) {
	if p.on == nil || p.silent {
		return
	}
	facts := workerplan.Worker{
		Now:       w.now,
		SlurmView: workerplan.SlurmView{SnapshotTime: w.now, NodeListTime: w.now, Registered: node.Yes, State: p.state(), Reason: p.reason, JobsKnown: node.Yes},
		Wanted:    workerplan.Wanted{Protection: workerpod.UntilDrained},
		Pod:       workerpod.Pod{Name: p.name, Phase: "Running", Scheduled: true, Ready: true, ReadySince: p.made, Created: p.made, Protected: p.protected(), Terminating: p.evicted},
		Host:      workerplan.Host{Name: p.on.node.Name, Cordoned: node.AnswerOf(p.on.node.Spec.Unschedulable), Reboot: watchedReboots.RebootOf(p.on.node)},
	}
	switch a := workerplan.Next(facts); {
	case a.StateChange.Drain != "":
		if p.persons {
			w.t.Fatalf("the drain of a person is overwritten with %q", a.StateChange.Drain)
		}
		p.drain, p.reason = true, node.Reason{Text: a.StateChange.Drain, SetBy: "slurm", At: w.now}
	case a.StateChange.Undrain:
		if p.persons || p.on.stuck == p {
			w.t.Fatalf("%s is undrained: %+v", p.name, p)
		}
		p.drain, p.reason = false, node.Reason{}
	}
}

// rebooterOf has a rebooter do one thing.
func (w *world) rebooterOf(h *host) {
	if !h.rebooter.Exists || !h.rights {
		return
	}
	facts := rebooterplan.Facts{Now: w.now, Boot: fmt.Sprint("boot-", h.boot), Node: rebooterplan.NodeOf(h.node), Evictions: h.evictions, Reboot: h.reboot}
	for _, p := range w.podsOn(h) {
		facts.Pods = append(facts.Pods, rebooterplan.Pod{UID: p.id(), Name: p.name, Leaving: p.evicted})
	}
	next := rebooterplan.Decide(facts)
	rebooterplan.Write(h.node, next, w.now)
	switch next.Action {
	case rebooterplan.Evict:
		for _, e := range next.Evict {
			at := slices.IndexFunc(w.pods, func(p *pod) bool { return p.id() == e.UID })
			refused := ""
			if w.pods[at].protected() {
				refused = "a budget"
			} else {
				w.pods[at].evicted = true
			}
			h.evictions[e.UID] = h.evictions[e.UID].Next(w.now, refused)
		}
	case rebooterplan.Cordon:
		h.node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: rebooterplan.FieldManager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
	case rebooterplan.Reboot:
		for _, p := range w.podsOn(h) {
			if p.job {
				w.t.Fatalf("%s reboots with a job of %s", h.node.Name, p.name)
			}
		}
		h.restart()
	case rebooterplan.Wait, rebooterplan.Tell, rebooterplan.SetTaint, rebooterplan.Release:
	}
	if h.cordon && !h.node.Spec.Unschedulable {
		w.t.Fatalf("the cordon of an administrator is gone from %s", h.node.Name)
	}
}

// kubernetes ends what is evicted, and places its successor.
func (w *world) kubernetes(p *pod) {
	if p.evicted {
		if p.job {
			w.t.Fatalf("%s is evicted with its job", p.name)
		}
		if p.on != nil && p.on.stuck == p {
			w.t.Logf("a process of %s stays on %s", p.name, p.on.node.Name)
			p.on.stuck = &pod{}
		}
		p.on, p.evicted, p.uid = nil, false, p.uid+1
	}
	if p.on != nil {
		return
	}
	i := rapid.IntRange(0, len(w.hosts)-1).Draw(w.t, "scheduled to")
	if h := w.hosts[i]; !h.node.Spec.Unschedulable && len(h.node.Spec.Taints) == 0 {
		p.on, p.made = h, w.now
	}
}

// steps lets everybody act so often, in a random order.
func (w *world) steps(n int) {
	for range n {
		switch rapid.IntRange(0, 3).Draw(w.t, "who") {
		case 0:
			w.decide(rapid.SampledFrom(w.hosts).Draw(w.t, "host"))
		case 1:
			w.engine(rapid.SampledFrom(w.pods).Draw(w.t, "pod"))
		case 2:
			w.rebooterOf(rapid.SampledFrom(w.hosts).Draw(w.t, "rebooter of"))
		case 3:
			w.kubernetes(rapid.SampledFrom(w.pods).Draw(w.t, "kubelet of"))
		}
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(w.t, "seconds")) * time.Second)
	}
}

// happen is something that others do.
func (w *world) happen() {
	h, p := rapid.SampledFrom(w.hosts).Draw(w.t, "host"), rapid.SampledFrom(w.pods).Draw(w.t, "pod")
	switch rapid.IntRange(0, 11).Draw(w.t, "event") {
	case 0, 1:
		p.job = p.on != nil && !p.drain && !p.evicted
	case 2:
		p.job = false
	case 3, 4: // slurmd gives up on a process
		if p.job && !p.drain && p.on.stuck == nil {
			p.job, p.drain, p.reason, p.on.stuck = false, true, node.Reason{Text: node.KillTaskFailed, SetBy: "slurm", At: w.now}, p
		}
	case 5:
		if !p.drain {
			p.drain, p.persons, p.reason = true, true, node.Reason{Text: "bad disk", SetBy: "root", At: w.now}
		}
	case 6:
		if p.persons {
			p.drain, p.persons, p.reason = false, false, node.Reason{}
		}
	case 7:
		if !h.node.Spec.Unschedulable {
			h.cordon, h.node.Spec.Unschedulable, h.node.ManagedFields = true, true, nil
		} else if h.cordon {
			h.cordon, h.node.Spec.Unschedulable = false, false
		}
	case 8:
		if h.rebooter.Exists = !h.rebooter.Exists; h.rebooter.Exists {
			h.rebooter.Ready = w.now
		}
		h.forget()
	case 9:
		h.rights = !h.rights
	case 10:
		h.restart()
	case 11:
		p.silent = !p.silent
	}
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 900).Draw(w.t, "seconds")) * time.Second)
}

// ends takes all causes away but what a reboot ends, and lets everybody act until nothing changes.
func (w *world) ends() {
	for _, h := range w.hosts {
		h.rebooter, h.rights = health.Rebooter{Exists: true, Ready: w.now}, true
		if h.cordon || !rebooterplan.NodeOf(h.node).Marks.Cordoned {
			h.cordon, h.node.Spec.Unschedulable = false, false
		}
	}
	for _, p := range w.pods {
		p.job, p.silent = false, false
		if p.persons {
			p.drain, p.persons, p.reason = false, false, node.Reason{}
		}
	}
	wrong := ""
	for range 400 {
		for _, p := range w.pods {
			w.engine(p)
			w.kubernetes(p)
		}
		for _, h := range w.hosts {
			w.decide(h)
			w.rebooterOf(h)
		}
		w.now = w.now.Add(30 * time.Second)
		if wrong = w.missing(); wrong == "" {
			return
		}
	}
	w.t.Fatalf("%s does not come back: %s", wrong, w.tell())
}

// missing returns a worker or a machine that is out of service; empty for none.
func (w *world) missing() string {
	for _, p := range w.pods {
		if p.drain || p.on == nil {
			return fmt.Sprintf("%s (%+v)", p.name, p)
		}
	}
	for _, h := range w.hosts {
		if degraded(h) || h.node.Spec.Unschedulable || len(h.node.Spec.Taints) > 0 {
			return h.node.Name
		}
	}
	return ""
}

func (w *world) tell() string {
	var out []string
	for _, h := range w.hosts {
		out = append(out, fmt.Sprintf("%s: %+v, unschedulable %v", h.node.Name, h.node.Status.Conditions, h.node.Spec.Unschedulable))
	}
	return strings.Join(out, "\n")
}

// TestInvariants checks with the rebooter's own decisions, whatever happens, that no job is lost by a reboot and that nothing of a person
// is touched. No more nodes are degraded at once than may be, and every node comes back once its causes are gone.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			w.happen()
			w.steps(rapid.IntRange(0, 8).Draw(t, "steps"))
		}
		w.ends()
	})
}
