// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const (
	drainReason  = "slurm-operator: Pod was cordoned pending termination"
	cordonReason = "slurm-operator: Pod was cordoned"
)

func retiredFor(d time.Duration) func(*workerpod.Pod) {
	return func(p *workerpod.Pod) { p.RetiredAt = noon.Add(-d) }
}

var anUncordonedNode = workerplan.Host{Name: "node-1", Cordoned: node.No}

func TestNext(t *testing.T) {
	ours := node.Reason{Text: drainReason, SetBy: "slurm", At: noon.Add(-10 * time.Minute)}
	cordon := node.Reason{Text: cordonReason, SetBy: "slurm", At: noon.Add(-7 * 24 * time.Hour)}
	admins := node.Reason{Text: "bad disk", SetBy: "root", At: noon.Add(-time.Hour)}
	tests := []struct {
		name          string
		state         string // "" with known Yes: Slurm did not answer
		known         node.Answer
		reason        node.Reason
		pod           workerpod.Pod
		timeout       time.Duration
		protect       workerpod.Protection
		age           time.Duration // of the list
		neverAnswered bool
		want          wanted
	}{
		{name: "an idle worker is left alone", state: "IDLE", known: node.Yes, pod: aPod(1), want: wanted{Protected: node.No}},
		{name: "a busy worker is protected", state: "MIXED", known: node.Yes, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Protected: node.Yes}},
		{name: "a busy worker is not protected where nobody wants protection", state: "ALLOCATED", known: node.Yes, pod: aPod(1), want: wanted{Protected: node.No}},
		{name: "an idle worker is protected too, since a job may start at any time", state: "IDLE", known: node.Yes, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Protected: node.Yes}},
		{name: "a worker of which it is not clear whether jobs run is protected", state: "IDLE HIBERNATING", known: node.Yes, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Protected: node.Yes}},
		{name: "a worker that Slurm says nothing about is protected", state: "", known: node.Yes, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Protected: node.Yes}},
		{name: "a worker that drains is protected", state: "MIXED DRAIN", known: node.Yes, reason: cordon, pod: aPod(1, cordoned), protect: workerpod.UntilDrained, want: wanted{Protected: node.Yes, Message: "the pod is cordoned"}},
		{name: "a worker whose jobs are cleaned up is protected", state: "IDLE DRAIN COMPLETING", known: node.Yes, reason: admins, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Protected: node.Yes}},
		{name: "a worker that is drained is not protected", state: "IDLE DRAIN", known: node.Yes, reason: cordon, pod: aPod(1, cordoned), protect: workerpod.UntilDrained, want: wanted{Protected: node.No, Message: "the pod is cordoned"}},
		{name: "a worker that an administrator has drained is not protected", state: "IDLE DRAIN", known: node.Yes, reason: admins, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Protected: node.No}},
		{name: "a worker that Slurm has given up is not protected", state: "DOWN NOT_RESPONDING", known: node.Yes, reason: admins, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Protected: node.No}},
		{name: "a worker that is about to be used again is protected before it is", state: "IDLE DRAIN", known: node.Yes, reason: cordon, pod: aPod(1), protect: workerpod.UntilDrained,
			want: wanted{Protected: node.Yes, Undrain: true, Announce: true, Message: "nobody wants the node drained any more"}},
		{name: "protection stays as it is while Slurm does not answer", known: node.Unknown, pod: aPod(1), protect: workerpod.UntilDrained, want: wanted{Message: "the state of the node in Slurm is not known: silence"}},
		{name: "a worker of which Slurm has said nothing yet is protected", known: node.Unknown, neverAnswered: true, pod: aPod(1), protect: workerpod.UntilDrained,
			want: wanted{Protected: node.Yes, Message: "the state of the node in Slurm is not known: silence"}},
		{name: "a worker of which Slurm has said nothing yet stays as it is where only busy ones are protected", known: node.Unknown, neverAnswered: true, pod: aPod(1), protect: workerpod.WhileBusy,
			want: wanted{Message: "the state of the node in Slurm is not known: silence"}},
		{name: "a worker that may be registering is protected", known: node.No, pod: aPod(1, readyFor(20*time.Second)), protect: workerpod.UntilDrained,
			want: wanted{Protected: node.Yes, Again: noon.Add(40 * time.Second), Message: "the node is not registered"}},
		{name: "a worker that starts is protected", known: node.No, pod: aPod(1, scheduled), protect: workerpod.UntilDrained, want: wanted{Protected: node.Yes, Message: "the node is not registered"}},
		{name: "a worker that starts is protected, whatever its predecessor has left in Slurm", state: "DOWN", known: node.Yes, reason: node.Reason{Text: "slurm-operator: Pod is terminating"}, pod: aPod(1, scheduled), protect: workerpod.UntilDrained,
			want: wanted{Protected: node.Yes}},
		{name: "a worker that is DOWN is protected until it has had its time to register", state: "DOWN", known: node.Yes, reason: node.Reason{Text: "slurm-operator: Pod is terminating"}, pod: aPod(1, readyFor(20*time.Second)), protect: workerpod.UntilDrained,
			want: wanted{Protected: node.Yes, Again: noon.Add(40 * time.Second)}},
		{name: "a worker that may be registering and is drained besides is not protected, since the drain keeps it from jobs", state: "DOWN DRAIN", known: node.Yes, reason: admins, pod: aPod(1, readyFor(20*time.Second)), protect: workerpod.UntilDrained,
			want: wanted{Protected: node.No}},
		{name: "a worker that does not register is not protected for ever", known: node.No, pod: aPod(1, unready), protect: workerpod.UntilDrained, want: wanted{Protected: node.No, Message: "the node is not registered"}},

		{name: "where idle workers may be evicted, a busy one may not", state: "MIXED", known: node.Yes, pod: aPod(1), protect: workerpod.WhileBusy, want: wanted{Protected: node.Yes}},
		{name: "where idle workers may be evicted, an idle one may", state: "IDLE", known: node.Yes, pod: aPod(1), protect: workerpod.WhileBusy, want: wanted{Protected: node.No}},
		{name: "where idle workers may be evicted, nothing changes while it is not clear whether one is busy", state: "IDLE HIBERNATING", known: node.Yes, pod: aPod(1), protect: workerpod.WhileBusy, want: wanted{}},

		{name: "a retired worker is drained first", state: "IDLE", known: node.Yes, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Drain: drainReason, Message: "draining"}},
		{name: "a retired worker that is busy is drained first", state: "ALLOCATED", known: node.Yes, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Drain: drainReason, Message: "draining"}},
		{name: "a retired worker is kept while jobs run", state: "ALLOCATED DRAIN", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Message: "waiting for jobs to end"}},
		{name: "a retired worker is kept while its jobs are cleaned up", state: "IDLE DRAIN COMPLETING", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Message: "waiting for jobs, COMPLETING on node  since 0001-01-01T00:00:00Z: a process or the epilog has not ended"}},
		{name: "a retired worker is deleted when nothing runs", state: "IDLE DRAIN", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Delete: true, Message: "retired (scale-in) and drained"}},
		{name: "a retired worker that an administrator has drained is deleted when nothing runs", state: "IDLE DRAIN", known: node.Yes, reason: admins, pod: aPod(1, updating), want: wanted{Protected: node.No, Delete: true, Message: "retired (update) and drained"}},
		{name: "a retired worker is kept when Slurm is not clear about jobs", state: "IDLE DRAIN INVALID", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Message: "waiting for jobs to end"}},
		{name: "a retired worker is kept when Slurm is not clear about the drain", state: "UNKNOWN", known: node.Yes, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Message: "waiting for Slurm to report whether the node drains"}},
		{name: "a retired worker is kept when Slurm says nothing at all", state: "", known: node.Yes, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Message: "waiting for Slurm to report whether the node drains"}},
		{name: "a drain that ends counts as none", state: "IDLE DRAIN UNDRAIN", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Drain: drainReason, Message: "draining"}},
		{name: "a retired worker that Slurm has given up is drained too, since it may come back and take a job; what Slurm said stays readable", state: "DOWN NOT_RESPONDING", known: node.Yes, reason: node.Reason{Text: "Not responding"}, pod: aPod(1, scaledIn),
			want: wanted{Protected: node.No, Drain: drainReason + " (before: Not responding)", Message: "draining"}},
		{name: "a retired worker that is down for a reason of ours is drained", state: "DOWN", known: node.Yes, reason: node.Reason{Text: "slurm-operator: Pod is terminating"}, pod: aPod(1, scaledIn),
			want: wanted{Protected: node.No, Drain: drainReason, Message: "draining"}},
		{name: "a retired worker that Slurm has given up is deleted when it is drained", state: "DOWN DRAIN NOT_RESPONDING", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Delete: true, Message: "retired (scale-in) and drained"}},
		{name: "a retired worker that Slurm has given up is kept while its jobs are being cleaned up", state: "DOWN DRAIN COMPLETING", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Message: "waiting for jobs, COMPLETING on node  since 0001-01-01T00:00:00Z: a process or the epilog has not ended"}},

		{name: "jobs have the time of drainTimeout", state: "MIXED DRAIN", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), timeout: time.Hour,
			want: wanted{Protected: node.No, Again: noon.Add(50 * time.Minute), Message: "waiting for jobs to end; spec.drainTimeout ends them at 2026-11-20T12:50:00Z"}},
		{name: "jobs have no more time than that of drainTimeout", state: "MIXED DRAIN", known: node.Yes, reason: ours, pod: aPod(1, scaledIn), timeout: 10 * time.Minute,
			want: wanted{Protected: node.No, Delete: true, Message: "retired (scale-in), and spec.drainTimeout of 10m0s is over"}},
		{name: "drainTimeout counts from the retirement, not from an earlier cordon", state: "MIXED DRAIN", known: node.Yes, reason: cordon, pod: aPod(1, scaledIn), timeout: 10 * time.Minute,
			want: wanted{Protected: node.No, Drain: drainReason, Message: "waiting for jobs to end"}},
		{name: "drainTimeout does not count from an earlier retirement, whose reason Slurm has kept with its time", state: "MIXED DRAIN", known: node.Yes, reason: ours, pod: aPod(1, scaledIn, retiredFor(time.Minute)), timeout: 10 * time.Minute,
			want: wanted{Protected: node.No, Again: noon.Add(9 * time.Minute), Message: "waiting for jobs to end; spec.drainTimeout ends them at 2026-11-20T12:09:00Z"}},
		{name: "drainTimeout does not count from before the drain", state: "MIXED DRAIN", known: node.Yes, reason: ours, pod: aPod(1, scaledIn, retiredFor(time.Hour)), timeout: 15 * time.Minute,
			want: wanted{Protected: node.No, Again: noon.Add(5 * time.Minute), Message: "waiting for jobs to end; spec.drainTimeout ends them at 2026-11-20T12:05:00Z"}},
		{name: "drainTimeout counts on when the cause of the retirement has changed meanwhile", state: "MIXED DRAIN", known: node.Yes, reason: ours, pod: aPod(1, updating), timeout: 10 * time.Minute,
			want: wanted{Protected: node.No, Delete: true, Message: "retired (update), and spec.drainTimeout of 10m0s is over"}},
		{name: "an administrator's drain has no time-out", state: "MIXED DRAIN", known: node.Yes, reason: admins, pod: aPod(1, scaledIn), timeout: time.Minute,
			want: wanted{Protected: node.No, Message: "waiting for jobs to end"}},
		{name: "a drain without a time has no time-out", state: "MIXED DRAIN", known: node.Yes, reason: node.Reason{Text: drainReason}, pod: aPod(1, scaledIn), timeout: time.Minute,
			want: wanted{Protected: node.No, Message: "waiting for jobs to end"}},

		{name: "a cordoned worker is drained", state: "MIXED", known: node.Yes, pod: aPod(1, cordoned), want: wanted{Protected: node.No, Drain: cordonReason, Message: "the pod is cordoned"}},
		{name: "a cordoned worker is drained once", state: "MIXED DRAIN", known: node.Yes, reason: cordon, pod: aPod(1, cordoned), want: wanted{Protected: node.No, Message: "the pod is cordoned"}},
		{name: "a cordoned worker that was to go and is kept is drained again: the next retirement has a time of its own", state: "MIXED DRAIN", known: node.Yes, reason: ours, pod: aPod(1, cordoned), want: wanted{Protected: node.No, Drain: cordonReason, Message: "the pod is cordoned"}},
		{name: "a cordon takes the place of nobody's reason", state: "DOWN", known: node.Yes, reason: admins, pod: aPod(1, cordoned), want: wanted{Protected: node.No, Message: "the pod is cordoned"}},
		{name: "a cordon does not take the place of the state of a node that is down", state: "DOWN", known: node.Yes, reason: cordon, pod: aPod(1, cordoned), want: wanted{Protected: node.No, Message: "the pod is cordoned"}},
		{name: "a drain of ours ends when nobody wants it", state: "IDLE DRAIN", known: node.Yes, reason: cordon, pod: aPod(1), want: wanted{Protected: node.No, Undrain: true, Announce: true, Message: "nobody wants the node drained any more"}},
		{name: "a drain of the pod's predecessor ends when nobody wants it", state: "IDLE DRAIN", known: node.Yes, reason: node.Reason{Text: "slurm-operator: Pod is terminating"}, pod: aPod(1), want: wanted{Protected: node.No, Undrain: true, Announce: true, Message: "nobody wants the node drained any more"}},
		{name: "a drain of ours does not end before the worker is ready", state: "DOWN DRAIN", known: node.Yes, reason: cordon, pod: aPod(1, unready), want: wanted{Protected: node.No}},
		{name: "an administrator's drain is left alone", state: "IDLE DRAIN", known: node.Yes, reason: admins, pod: aPod(1), want: wanted{Protected: node.No}},
		{name: "a drain without a reason is left alone", state: "IDLE DRAIN", known: node.Yes, pod: aPod(1), want: wanted{Protected: node.No}},
		{name: "a drain that is not clear is left alone", state: "IDLE HIBERNATING", known: node.Yes, reason: cordon, pod: aPod(1), want: wanted{Protected: node.Yes}, protect: workerpod.UntilDrained},

		{name: "nothing is done while Slurm does not answer", known: node.Unknown, pod: aPod(1, scaledIn), timeout: time.Nanosecond, want: wanted{Protected: node.No, Message: "the state of the node in Slurm is not known: silence"}},
		{name: "nothing is done about a cordoned worker while Slurm does not answer", known: node.Unknown, pod: aPod(1, cordoned), want: wanted{Protected: node.No, Message: "the state of the node in Slurm is not known: silence"}},
		{name: "nothing is done about a pod that is going", state: "IDLE", known: node.Yes, pod: aPod(1, scaledIn, terminating), want: wanted{Message: "the pod is being deleted"}},

		{name: "a worker that is not registered and not ready is left alone", known: node.No, pod: aPod(1, unready), want: wanted{Protected: node.No, Message: "the node is not registered"}},
		{name: "a retired worker that is not registered is deleted", known: node.No, pod: aPod(1, scaledIn), want: wanted{Protected: node.No, Delete: true, Message: "retired (scale-in) and not registered in Slurm"}},
		{name: "a retired worker that is not registered is deleted at once if it has not started", known: node.No, pod: aPod(1, scaledIn, scheduled, createdBefore(time.Second)), want: wanted{Protected: node.No, Delete: true, Message: "retired (scale-in) and not registered in Slurm"}},
		{name: "a retired worker that has no place to run yet is deleted, whatever Slurm says, or not", known: node.Unknown, pod: aPod(1, scaledIn, pending), want: wanted{Protected: node.No, Delete: true, NeverStarted: true, Message: "retired (scale-in) and never started"}},
		{name: "a retired worker is not deleted right after its start, when it may be registering", known: node.No, pod: aPod(1, scaledIn, readyFor(20*time.Second)),
			want: wanted{Protected: node.No, Again: noon.Add(40 * time.Second), Message: "waiting to see whether the node registers"}},
		{name: "a retired worker is not deleted by a list that is older than the time it has to register", known: node.No, age: time.Minute, pod: aPod(1, scaledIn, readyFor(90*time.Second)),
			want: wanted{Protected: node.No, Relist: true, Again: noon.Add(time.Second), Message: "waiting to see whether the node registers"}},
		{name: "the time to register counts from the creation of the pod when it does not say since when it is ready", known: node.No, pod: aPod(1, scaledIn, unready, readyFor(1e6*time.Hour), createdBefore(time.Second)),
			want: wanted{Protected: node.No, Again: noon.Add(59 * time.Second), Message: "waiting to see whether the node registers"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := workerplan.Worker{Now: noon, SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon.Add(-tt.age), JobsKnown: node.Yes, Registered: tt.known, Reason: tt.reason, SlurmStateLost: node.No}, Pod: tt.pod, Host: anUncordonedNode, Wanted: workerplan.Wanted{DrainTimeout: tt.timeout, Protection: tt.protect}}
			if tt.known == node.Yes {
				w.State = node.Parse(strings.Fields(tt.state))
			}
			if tt.known == node.Unknown {
				w.Why, w.NeverAnswered = "silence", tt.neverAnswered
			}
			got := workerplan.Next(w)
			got.Shown.OutOfService = workerplan.OutOfService{} // TestWhoKeepsJobsFromANode
			if tt.known == node.Yes && !tt.pod.Terminating {
				tt.want.Conditions, tt.want.DeadlineKnown = w.State.Conditions(), w.State.Busy() == node.No
				tt.want.WantJobs = w.State.Draining() == node.Yes && (tt.pod.Retired != "" || tt.reason.Ours()) || w.State.Busy() == node.Yes && tt.pod.Retired != "" ||
					tt.pod.Retired != "" && w.State.Busy() == node.No && w.State.Drain().Or(w.State.Down()) == node.Yes
			}
			if !tt.pod.Terminating {
				tt.want.NodeMark = node.No
			}
			tt.want.ConditionsKnown = tt.known != node.Unknown && !tt.pod.Terminating
			tt.want.WaitsForJobs = strings.HasPrefix(tt.want.Message, "waiting for jobs")
			if diff := tt.want.diff(got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarksOnPodsAreNotTakenFromStatesThatAreNotKnown(t *testing.T) {
	got := workerplan.Next(workerplan.Worker{Now: noon, Pod: aPod(1), SlurmView: workerplan.SlurmView{Registered: node.Unknown}, Wanted: workerplan.Wanted{Protection: workerpod.UntilDrained}})
	if got.Shown.ConditionsKnown || got.Marks.Protected != node.Unknown {
		t.Errorf("%+v", got)
	}
}

// A pod takes over a Slurm node that its predecessor has left DOWN. That is not the state of this pod.
func TestNothingIsShownOfWhatThePodBeforeHasLeft(t *testing.T) {
	phase := "Running"
	next := func(state string, created, started, now time.Duration) workerplan.Action {
		pod := aPod(1)
		pod.Created, pod.Phase = noon.Add(created), phase
		w := workerplan.Worker{
			Now:       noon.Add(now),
			SlurmView: workerplan.SlurmView{SnapshotTime: noon.Add(now), NodeListTime: noon.Add(now), Registered: node.Yes, State: node.Parse(strings.Fields(state)), Reason: node.Reason{Text: "slurm-operator: Pod is terminating", At: noon.Add(-time.Second)}},
			Pod:       pod,
			Host:      anUncordonedNode,
		}
		if started != 0 {
			w.Record.Started = noon.Add(started)
		}
		return workerplan.Next(w)
	}
	const second = time.Second
	if got := next("DOWN", 0, -time.Hour, second); got.Shown.ConditionsKnown || !got.Again.Equal(noon.Add(time.Minute)) {
		t.Errorf("before its slurmd registers it shows %v; again %s", got.Shown.Conditions, got.Again)
	}
	for name, got := range map[string]workerplan.Action{
		"once its slurmd is registered": next("DOWN", 0, 2*second, 3*second), "when it has lasted": next("DOWN", 0, -time.Hour, time.Minute),
		"where nobody knows when a slurmd started": next("DOWN", 0, 0, second), "when the node is not down": next("IDLE", 0, -time.Hour, second),
	} {
		if !got.Shown.ConditionsKnown {
			t.Errorf("nothing is shown %s", name)
		}
	}
	phase = "Pending"
	if got := next("IDLE", 0, second, 2*second); got.Shown.ConditionsKnown || !got.Again.Equal(noon.Add(time.Minute)) {
		t.Errorf("before Kubernetes says that the pod runs it shows %v; again %s", got.Shown.Conditions, got.Again)
	}
	if got := next("IDLE", 0, second, time.Minute); !got.Shown.ConditionsKnown {
		t.Error("nothing is shown of a pod that Kubernetes has not run for a minute")
	}
}

func TestANewPodKeepsItsProtectionUntilTheDrainOfThePodBeforeEnds(t *testing.T) {
	next := func(reason string, options ...func(*workerpod.Pod)) node.Answer {
		pod := aPod(1, options...)
		pod.Created, pod.ReadySince = noon.Add(-10*time.Second), noon.Add(-5*time.Second)
		return workerplan.Next(workerplan.Worker{
			Now:       noon,
			SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, JobsKnown: node.Yes, State: node.Parse([]string{"DOWN", "DRAIN"}), Reason: node.Reason{Text: reason, At: noon.Add(-time.Minute)}},
			Pod:       pod,
			Host:      anUncordonedNode,
			Wanted:    workerplan.Wanted{Protection: workerpod.UntilDrained},
		}).Marks.Protected
	}
	if got := next(drainReason); got != node.Yes {
		t.Errorf("with the drain of a retirement it is protected: %v", got)
	}
	for name, got := range map[string]node.Answer{
		"an administrator's drain": next("bad disk"), "a cordon": next(cordonReason, cordoned), "its own retirement": next(drainReason, scaledIn),
	} {
		if got != node.No {
			t.Errorf("with %s it is protected: %v", name, got)
		}
	}
}
