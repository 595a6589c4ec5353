// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// judge looks at the world before a write is carried out, and returns what looks at it afterwards. The invariants are
// those of reliability.md, by their numbers there.
func (w *world) judge(c call) (after func(call)) {
	resource, rest, _ := strings.Cut(c.path, "/")
	name, subresource, _ := strings.Cut(rest, "/")
	switch {
	case c.to == "slurm" && resource == "reconfigure":
		return w.judgeReading()
	case c.to == "slurm":
		foreign := w.judgeSlurm(c)
		return func(c call) {
			foreign(c)
			w.judgeDrainBudget(c)
		}
	case c.method == http.MethodDelete && resource == "pods" || subresource == "eviction":
		return w.judgeDeletion(name)
	case c.method == http.MethodDelete && (resource == "persistentvolumeclaims" || resource == "secrets"):
		return applied(func(c call) { w.fail("invariant 6, data and keys are kept", "%s", c.label()) })
	case resource == "statefulsets":
		return w.judgeStop(name)
	case c.method == http.MethodDelete && resource == "nodes":
		return w.judgeReplacement(name)
	case resource == "nodes":
		return w.judgeReboot(name)
	case resource == "jobs":
		return applied(w.judgeOverwriting)
	case resource == "configmaps":
		return applied(w.judgeConfiguration)
	case resource == "pods" && subresource == "":
		availability, retirement := w.judgeAvailability(name), w.noteRetirement(name)
		return func(c call) {
			availability(c)
			retirement(c)
			w.judgeOverwriting(c)
		}
	}
	return func(call) {}
}

func applied(check func(call)) func(call) {
	return func(c call) {
		if c.applied {
			check(c)
		}
	}
}

// pod returns a pod as it is stored, or nil.
func (w *world) pod(name string) *unstructured.Unstructured {
	for _, p := range w.sim.Objects(podKind) {
		if p.GetName() == name {
			return p
		}
	}
	return nil
}

// judgeDeletion checks invariants 1, 4 and 5. Nothing is deleted while a job runs there whose time is not over, or while Slurm answers
// wrongly, or because Slurm has forgotten it. And never too much is deleted at once.
func (w *world) judgeDeletion(name string) func(call) {
	pod := w.pod(name)
	if pod == nil || !isWorker(pod) {
		return func(call) {}
	}
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	state, known := w.slurm.Node(slurmName(pod))
	w.mu.Lock()
	lying, forgotten := w.lying, w.forgotten[slurmName(pod)]
	w.mu.Unlock()
	availability := w.judgeAvailability(name)
	overdue := w.overdue(pod)
	return applied(func(c call) {
		availability(c)
		if phase == "Failed" || phase == "Succeeded" {
			return
		}
		// A job that waits for its node to power up runs nowhere yet.
		if known && node.Parse(state.State).Busy() != node.No && !node.Parse(state.State).Has(node.PoweringUp) && !overdue {
			w.fail("invariant 1, jobs are not killed", "Pod %s was deleted while its node was %v", name, state.State)
		}
		// A node whose jobs are suspended looks idle.
		if known && len(state.Jobs) > 0 && !node.Parse(state.State).Has(node.PoweringUp) && !overdue {
			w.fail("invariant 1, jobs are not killed", "Pod %s was deleted while the jobs %v were on its node, which was %v", name, state.Jobs, state.State)
		}
		// The view from before the lie is good for as long as it is fresh.
		if phase == "Running" && !lying.IsZero() && time.Since(lying) > 20*time.Second {
			w.fail("invariant 4, unknown is not idle", "Pod %s was deleted although Slurm has told nothing true since %s", name, time.Since(lying))
		}
		if phase == "Running" && !known && forgotten && !overdue {
			w.fail("invariant 4, forgotten is not idle", "Pod %s was deleted although slurmctld has lost its state, and jobs may run there", name)
		}
		if known {
			w.judgeBudget(c.process)
		}
	})
}

// noteRetirement remembers since when a worker is to go.
func (w *world) noteRetirement(name string) func(call) {
	return applied(func(call) {
		pod := w.pod(name)
		if pod == nil || !isWorker(pod) {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		_, before := w.retired[pod.GetUID()]
		switch now := pod.GetAnnotations()["coxswain.dev/retired"] != ""; {
		case !now:
			delete(w.retired, pod.GetUID())
		case !before:
			w.retired[pod.GetUID()] = time.Now()
		}
	})
}

// overdue reports whether the jobs of a worker have had the time that spec.drainTimeout gives them, from when it is to go. Slurm
// counts seconds.
func (w *world) overdue(pod *unstructured.Unstructured) bool {
	for _, owner := range pod.GetOwnerReferences() {
		n, there := get[slinkyv1beta1.NodeSet](w, owner.Name)
		if !there || n.Spec.DrainTimeout == nil {
			continue
		}
		w.mu.Lock()
		since, ok := w.retired[pod.GetUID()]
		w.mu.Unlock()
		if at := n.DeletionTimestamp; at != nil && (!ok || at.Time.Before(since)) {
			since, ok = at.Time, true
		}
		return ok && time.Since(since) > n.Spec.DrainTimeout.Duration-2*time.Second
	}
	return false
}

// judgeBudget checks invariant 5: within a minute no more workers that Slurm has are deleted than half of its nodes, or
// twenty. The operator counts in memory, so that the limit is for each of its lives.
func (w *world) judgeBudget(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.destroyed = append(slices.DeleteFunc(p.destroyed, func(at time.Time) bool { return time.Since(at) >= time.Minute }), time.Now())
	if limit := max(20, len(w.slurm.Names())/2); len(p.destroyed) > limit {
		w.failLocked("invariant 5, the budget", "%d workers were deleted within a minute, of which there may be %d", len(p.destroyed), limit)
	}
}

// judgeSlurm checks invariant 2: what others set is neither cleared nor overwritten.
func (w *world) judgeSlurm(c call) func(call) {
	u := c.update()
	if len(u.State) == 0 {
		return func(call) {}
	}
	names, err := hostlist.Expand(strings.Join(u.Name, ","), 100000)
	if err != nil {
		w.fail("hostlists can be read", "%q: %v", u.Name, err)
	}
	foreign := ""
	for _, name := range names {
		status, known := w.slurm.Node(name)
		state := node.Parse(status.State)
		reason := node.Reason{Text: status.Reason, SetBy: status.ReasonUser}
		// A node that is DOWN and is also to be drained keeps the reason within the other one.
		quoted := state.Drain() == node.No && slices.Equal(u.State, []string{"DRAIN"}) && strings.Contains(u.Reason, status.Reason)
		late := slices.Equal(u.State, []string{"RESUME"}) && node.HeldBy(state, reason) == node.Slurm // it did not come within ResumeTimeout
		replaced := node.Reason{Text: u.Reason}.TakesPlaceOf(reason)                                  // which stays in the other one
		if known && (state.Drain() == node.Yes || state.Down() == node.Yes) && !reason.Ours() && !quoted && !late && !replaced && !w.justDisturbed(name) {
			foreign = name + ": " + status.Reason
		}
	}
	return applied(func(c call) {
		if foreign != "" {
			w.fail("invariant 2, the reasons of others are kept", "%s, where the reason was %s", c.label(), foreign)
		}
	})
}

// justDisturbed reports whether a node was changed a moment ago, so that it cannot be known yet.
func (w *world) justDisturbed(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.disturbed[name]
	return ok && time.Since(at) < 5*time.Second
}

// judgeAvailability checks invariant 3: a worker that is available is not taken away for an update when as many as may are
// unavailable already.
func (w *world) judgeAvailability(name string) func(call) {
	before := w.pod(name)
	if before == nil || !isWorker(before) || !available(before) {
		return func(call) {}
	}
	return applied(func(call) {
		after := w.pod(name)
		if after != nil && available(after) {
			return
		}
		if state, _ := w.slurm.Node(slurmName(before)); node.Parse(state.State).Has(node.PoweredDown) {
			return // Slurm wants it gone
		}
		if after != nil && after.GetAnnotations()["coxswain.dev/retired"] != "update" {
			return // a scale-in makes fewer that are wanted
		}
		set, replicas, allowed := w.limits(before)
		if set == "" {
			return
		}
		serving := int64(0)
		for _, p := range w.sim.Objects(podKind) {
			if isWorker(p) && strings.HasPrefix(p.GetName(), set+"-") && available(p) {
				serving++
			}
		}
		if missing := replicas - serving; missing > allowed && (after == nil || missing > 1) {
			w.fail("invariant 3, maxUnavailable", "without %s %d of %d workers are unavailable; %d may be", name, missing, replicas, allowed)
		}
	})
}

func available(pod *unstructured.Unstructured) bool {
	if pod.GetDeletionTimestamp() != nil || pod.GetAnnotations()["coxswain.dev/retired"] != "" {
		return false
	}
	return says(pod, string(corev1.PodReady))
}

// says reports whether a condition of an object is True.
func says(obj *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, ok := c.(map[string]any)
		return ok && fields["type"] == condition && fields["status"] == "True"
	})
}

// limits returns the wanted number of workers of a pod's NodeSet, and how many of them may be unavailable.
func (w *world) limits(pod *unstructured.Unstructured) (set string, replicas, allowed int64) {
	for _, owner := range pod.GetOwnerReferences() {
		n, there := get[slinkyv1beta1.NodeSet](w, owner.Name)
		if owner.Kind != "NodeSet" || !there {
			continue
		}
		limit := n.MaxUnavailable()
		most, err := intstr.GetScaledValueFromIntOrPercent(&limit, int(n.Replicas()), true)
		if err != nil {
			most = 1
		}
		wanted := n.Replicas()
		if n.SavesPower() {
			wanted = n.Status.Desired
		}
		return owner.Name, int64(wanted), int64(max(1, most))
	}
	return "", 0, 0
}

// judgeConfiguration checks invariant 8: what is rendered can be read.
func (w *world) judgeConfiguration(c call) {
	var written struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(c.body, &written); err != nil {
		w.fail("invariant 8, the configuration parses", "%s: %v", c.label(), err)
	}
	for file, text := range written.Data {
		if file != "slurm.conf" {
			continue
		}
		document, problems := conf.Parse(conf.Slurm, text)
		for _, key := range document.Unknown("") {
			problems = append(problems, key.Problem)
		}
		problems = append(append(problems, document.CheckNames()...), document.CheckValues(conf.NewestRelease)...)
		if len(problems) > 0 {
			w.fail("invariant 8, the configuration parses", "%s: %v", file, problems)
		}
	}
}
