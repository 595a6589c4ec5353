// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// registered returns a ready worker whose record is as it should be, changed by options.
func registered(options ...func(*workerplan.Worker)) workerplan.Worker {
	comment := node.Comment{Namespace: "ns", PodName: "w-1", Node: "node-1", NodeSetName: "w", NodeSetUID: "u"}
	w := workerplan.Worker{
		Now:       noon,
		SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse([]string{"IDLE"}), Record: workerplan.Record{Comment: comment.String(), Features: []string{"w"}, Active: []string{"w"}}},
		Pod:       aPod(1),
		Slurm:     "cpu-1",
		Wanted:    workerplan.Wanted{Comment: comment},
		Host:      workerplan.Host{Name: "node-1", Cordoned: node.No, Ready: node.Yes},
	}
	for _, o := range options {
		o(&w)
	}
	return w
}

func placedAt(spec string) func(*workerplan.Worker) {
	return func(w *workerplan.Worker) { w.Host.Topology, w.Host.HasTopology = spec, true }
}

// placedBefore sets the place that the pod shows from the annotation before.
func placedBefore(spec string) func(*workerplan.Worker) {
	return func(w *workerplan.Worker) { w.Topology = spec }
}

func with(features string) func(*workerplan.Worker) {
	return func(w *workerplan.Worker) { w.Host.Features = features }
}

func TestTheRecordOfTheNode(t *testing.T) {
	text := func(s string) *string { return &s }
	const comment = `{"namespace":"ns","podName":"w-1","node":"node-1","nodeSetName":"w","nodeSetUID":"u"}`
	tests := []struct {
		name    string
		w       workerplan.Worker
		want    workerplan.RecordUpdate
		trouble string
	}{
		{name: "a record that is right is left alone", w: registered()},
		{name: "the comment names the pod", w: registered(func(w *workerplan.Worker) { w.Record.Comment = "" }), want: workerplan.RecordUpdate{Comment: text(comment)}},
		{name: "a comment that names the pod before is corrected", w: registered(func(w *workerplan.Worker) { w.Record.Comment = `{"podName":"w-1","node":"node-0"}` }),
			want: workerplan.RecordUpdate{Comment: text(comment)}},
		{name: "what an administrator wrote there stays", w: registered(func(w *workerplan.Worker) { w.Record.Comment = "ask Bob" })},
		{name: "nothing is said before the worker is ready", w: registered(func(w *workerplan.Worker) { w.Record, w.Pod.Ready = workerplan.Record{}, false })},
		{name: "nothing is said while nothing is known of the Kubernetes node of the worker", w: registered(func(w *workerplan.Worker) { w.Record, w.Host.Cordoned = workerplan.Record{}, node.Unknown })},

		{name: "the topology is that of the Kubernetes node", w: registered(placedAt("topo-switch:s2,topo-block:b2")), want: workerplan.RecordUpdate{Topology: text("topo-switch:s2,topo-block:b2")}},
		{name: "the topology is written once", w: registered(placedAt("topo-switch:s2"), func(w *workerplan.Worker) { w.Record.Topology = "topo-switch:spine:s2" })},
		{name: "an empty topology takes the node out", w: registered(placedAt(""), func(w *workerplan.Worker) { w.Record.Topology = "a:b" }), want: workerplan.RecordUpdate{Topology: text("")}},
		{name: "a topology that is no longer there is taken back", w: registered(placedBefore("topo:s1"), func(w *workerplan.Worker) { w.Record.Topology = "topo:spine:s1" }), want: workerplan.RecordUpdate{Topology: text("")}},
		{name: "a topology to which an administrator has moved the node since is not taken back", w: registered(placedBefore("topo:s1"), func(w *workerplan.Worker) { w.Record.Topology = "topo:s2" })},
		{name: "without a topology the node stays where slurmd has put it", w: registered(func(w *workerplan.Worker) { w.Record.Topology = "a:b" })},
		{name: "a topology that cannot be read is told", w: registered(placedAt("rack 7")),
			trouble: `InvalidTopology "rack 7" is not of the form topology:unit; correct the annotation topology.slinky.slurm.net/spec of Kubernetes node node-1, such as topo-switch:s2,topo-block:b2`},

		{name: "features come beside those of others", w: registered(with("a100, nvlink")),
			want: workerplan.RecordUpdate{Features: []string{"w", "k8s/a100", "k8s/nvlink"}, Active: []string{"w", "k8s/a100", "k8s/nvlink"}}},
		{name: "features are written once more when slurmd forgot one of the two lists", w: registered(with("a"), func(w *workerplan.Worker) { w.Record.Features = []string{"w", "k8s/a"} }),
			want: workerplan.RecordUpdate{Features: []string{"w", "k8s/a"}, Active: []string{"w", "k8s/a"}}},
		{name: "our features go with the annotation", w: registered(func(w *workerplan.Worker) { w.Record.Features, w.Record.Active = []string{"k8s/a"}, []string{"k8s/a"} }),
			want: workerplan.RecordUpdate{Features: []string{}, Active: []string{}}},
		{name: "features that cannot be read are told", w: registered(with("a&b")),
			trouble: `InvalidFeatures the feature "a&b" has the character '&'; only letters, digits and . _ - : / may be there; correct the annotation features.slinky.slurm.net/spec of Kubernetes node node-1, a comma-separated list`},

		{name: "what Slurm refused is told and not repeated",
			w: registered(placedAt("a:b"), func(w *workerplan.Worker) {
				w.LastAttempt = workerplan.Attempt{Update: `{"topology":"a:b"}`, At: noon.Add(-time.Minute), Problem: "Invalid topology"}
			}),
			trouble: `RecordRefused Slurm did not accept {"topology":"a:b"} for the record of node cpu-1: Invalid topology; the operator retries every 5m0s`},
		{name: "what Slurm took and does not show is told and not repeated",
			w: registered(placedAt("a:b"), func(w *workerplan.Worker) {
				w.LastAttempt = workerplan.Attempt{Update: `{"topology":"a:b"}`, At: noon.Add(-time.Minute)}
			}),
			trouble: `RecordRefused Slurm did not accept {"topology":"a:b"} for the record of node cpu-1: Slurm does not show the change afterwards; the operator retries every 5m0s`},
		{name: "what Slurm refused is tried again after a while",
			w: registered(placedAt("a:b"), func(w *workerplan.Worker) {
				w.LastAttempt = workerplan.Attempt{Update: `{"topology":"a:b"}`, At: noon.Add(-time.Hour), Problem: "no"}
			}),
			want:    workerplan.RecordUpdate{Topology: text("a:b")},
			trouble: `RecordRefused Slurm did not accept {"topology":"a:b"} for the record of node cpu-1: no; the operator retries every 5m0s`},
		{name: "what got no answer is tried again soon, and is no trouble",
			w: registered(placedAt("a:b"), func(w *workerplan.Worker) {
				w.LastAttempt = workerplan.Attempt{Update: `{"topology":"a:b"}`, At: noon.Add(-10 * time.Second), Unanswered: true}
			}),
			want: workerplan.RecordUpdate{Topology: text("a:b")}},
		{name: "what got no answer is not tried again at once",
			w: registered(placedAt("a:b"), func(w *workerplan.Worker) {
				w.LastAttempt = workerplan.Attempt{Update: `{"topology":"a:b"}`, At: noon.Add(-9 * time.Second), Unanswered: true}
			})},
		{name: "nothing is written while an update is on its way", w: registered(placedAt("a:b"), func(w *workerplan.Worker) { w.Recording = true })},
		{name: "nothing is written before Slurm has been asked what it made of the update before",
			w: registered(placedAt("a:b"), func(w *workerplan.Worker) {
				w.Recorded, w.LastAttempt = noon.Add(time.Millisecond), workerplan.Attempt{Update: `{"topology":"a:b"}`, At: noon.Add(time.Millisecond)}
			})},
		{name: "something else than what Slurm refused is written at once",
			w: registered(placedAt("a:c"), func(w *workerplan.Worker) {
				w.LastAttempt = workerplan.Attempt{Update: `{"topology":"a:b"}`, At: noon, Problem: "no"}
			}),
			want: workerplan.RecordUpdate{Topology: text("a:c")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(tt.w)
			if diff := cmp.Diff(tt.want, got.Record); diff != "" {
				t.Error(diff)
			}
			if text := troubles(got); text != tt.trouble {
				t.Errorf("trouble %q, want %q", text, tt.trouble)
			}
		})
	}
}

func troubles(a workerplan.Action) string {
	var out []string
	for _, t := range a.Shown.Troubles {
		out = append(out, t.Reason+" "+t.Message)
	}
	return strings.Join(out, "\n")
}

func TestThePodForgetsATopologyThatSlurmDoesNotShowAnyMore(t *testing.T) {
	for name, tt := range map[string]struct {
		shown string
		want  bool
	}{"the pod keeps a topology that Slurm shows": {"topo:s1", false}, "the pod forgets a topology that Slurm does not show": {"", true}, "the pod forgets a topology that somebody has changed": {"topo:s2", true}} {
		t.Run(name, func(t *testing.T) {
			got := workerplan.Next(registered(placedBefore("topo:s1"), func(w *workerplan.Worker) { w.Record.Topology = tt.shown })).Marks.Topology
			if (got != nil) != tt.want || got != nil && *got != "" {
				t.Errorf("the pod is to say %v", got)
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	tests := []struct {
		name  string
		state string
		pod   workerpod.Pod
		jobs  []workerplan.Job
		known node.Answer

		wants    bool
		deadline time.Time
		is       bool
		message  string
	}{
		{name: "an idle worker has no deadline", state: "IDLE", pod: aPod(1), is: true},
		{name: "the deadline of a busy worker is not known while nobody asks", state: "MIXED", pod: aPod(1)},
		{name: "jobs are asked for as soon as a worker is to go", state: "MIXED", pod: aPod(1, scaledIn), wants: true, message: "draining"},
		{name: "jobs are asked for while a retired worker drains", state: "MIXED DRAIN", pod: aPod(1, scaledIn), wants: true, message: "waiting for jobs to end"},
		{name: "jobs are asked for while a cordoned worker drains", state: "MIXED DRAIN", pod: aPod(1, cordoned), wants: true, message: "the pod is cordoned"},
		{name: "the deadline is that of the last job", state: "MIXED DRAIN", pod: aPod(1, scaledIn), known: node.Yes,
			jobs: []workerplan.Job{{ID: 7, User: "bob", End: at(time.Hour)}, {ID: 812, User: "alice", End: at(2 * time.Hour)}}, wants: true, deadline: at(2 * time.Hour), is: true,
			message: "waiting for 2 jobs, the last of which is job 812 of alice, which ends no later than 2026-11-20T14:00:00Z"},
		{name: "a job without a limit never ends", state: "MIXED DRAIN", pod: aPod(1, scaledIn), known: node.Yes,
			jobs: []workerplan.Job{{ID: 812}}, wants: true, deadline: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), is: true,
			message: "waiting for job 812, which has no time limit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := registered(func(w *workerplan.Worker) {
				w.State, w.Pod, w.Jobs, w.JobsKnown = node.Parse(strings.Fields(tt.state)), tt.pod, tt.jobs, tt.known
				w.Reason = node.Reason{Text: drainReason, At: noon}
			})
			got := workerplan.Next(w)
			if got.Questions.WantJobs != tt.wants || !got.Marks.Deadline.Equal(tt.deadline) || got.Marks.DeadlineKnown != tt.is || got.Shown.Message != tt.message {
				t.Errorf("wants %t, deadline %v (known %t), message %q", got.Questions.WantJobs, got.Marks.Deadline, got.Marks.DeadlineKnown, got.Shown.Message)
			}
		})
	}
}

func TestWorkersThatDoNotRegister(t *testing.T) {
	absent := func(d time.Duration, options ...func(*workerpod.Pod)) workerplan.Worker {
		return workerplan.Worker{Now: noon, SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.No, Absent: noon.Add(-d), SlurmStateLost: node.No}, Pod: aPod(1, options...), Host: anUncordonedNode}
	}
	doubtful := func(w workerplan.Worker, timeout time.Duration) workerplan.Worker {
		w.SlurmStateLost, w.DrainTimeout = node.Unknown, timeout
		return w
	}
	unregistered := func(p *workerpod.Pod) { p.Retired = workerpod.Unregistered }
	lost := func(w workerplan.Worker, timeout time.Duration) workerplan.Worker {
		w.SlurmStateLost, w.DrainTimeout, w.Pod.ReadySince, w.Pod.Created = node.Yes, timeout, noon.Add(-48*time.Hour), noon.Add(-48*time.Hour)
		return w
	}
	tests := []struct {
		name   string
		w      workerplan.Worker
		delete bool
		cause  string
		again  time.Time
	}{
		{name: "a worker that is to be made anew goes", w: absent(time.Hour, unregistered), delete: true, cause: "SlurmNodeNotRegistered"},
		{name: "a worker that is to be made anew does not go on the first list without it", w: absent(20*time.Second, unregistered), again: noon.Add(40 * time.Second)},
		{name: "a worker that is to be made anew does not go soon after it became ready", w: absent(time.Hour, unregistered, readyFor(10*time.Second)), again: noon.Add(50 * time.Second)},
		{name: "a retired worker goes", w: absent(time.Hour, scaledIn), delete: true},
		{name: "a retired worker does not go on the first list without it", w: absent(time.Second, scaledIn), again: noon.Add(59 * time.Second)},
		{name: "a worker that is neither retired nor to be made anew stays, however long it is absent", w: absent(time.Hour)},
		{name: "a retired worker stays while Slurm has lost its state", w: lost(absent(24*time.Hour, scaledIn), 0)},
		{name: "a retired worker goes when Slurm has lost its state and its jobs have had the time that the spec gives them", w: lost(absent(time.Hour, scaledIn), 30*time.Minute), delete: true},
		{name: "a retired worker does not go while Slurm has lost its state and its jobs have time yet", w: lost(absent(time.Hour, scaledIn), 90*time.Minute), again: noon.Add(30 * time.Minute)},
		{name: "a retired worker stays while nobody can tell whether Slurm has lost its state", w: doubtful(absent(time.Hour, scaledIn), 0), again: noon.Add(10 * time.Second)},
		{name: "a retired worker waits until its absence is old enough before anybody asks whether Slurm has lost its state", w: doubtful(absent(20*time.Second, scaledIn), 0), again: noon.Add(40 * time.Second)},
		{name: "a retired worker with a drainTimeout waits until its absence is old enough", w: doubtful(absent(20*time.Second, scaledIn), time.Hour), again: noon.Add(40 * time.Second)},
		{name: "a retired worker goes when nobody can tell whether Slurm has lost its state and its jobs have had their time", w: doubtful(absent(time.Hour, scaledIn), 30*time.Minute), delete: true},
		{name: "the jobs of a retired worker have their time from when it is to go", w: doubtful(absent(time.Hour, scaledIn, retiredFor(10*time.Minute)), 30*time.Minute), again: noon.Add(20 * time.Minute)},
		{name: "a retired worker that has not started yet goes in any case", w: lost(absent(time.Hour, scaledIn, scheduled), 0), delete: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(tt.w)
			if got.Deletion.Delete != tt.delete || got.Deletion.Cause != tt.cause || !got.Again.Equal(tt.again) || len(got.Shown.Troubles) > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWhatAPersonHasToLookAt(t *testing.T) {
	tests := []struct {
		name    string
		w       workerplan.Worker
		trouble string
		again   time.Time
	}{
		{name: "a pod that is going has its grace period", w: registered(func(w *workerplan.Worker) { w.Pod.Terminating, w.TerminationDeadline = true, noon }), again: noon.Add(time.Minute)},
		{name: "a pod that is going should be gone after its grace period", w: registered(func(w *workerplan.Worker) { w.Pod.Terminating, w.TerminationDeadline = true, noon.Add(-time.Hour) }),
			trouble: "StuckTerminating Pod w-1 should have ended by 2026-11-20T11:00:00Z, but Kubernetes node node-1 has not confirmed that it did; the pod is replaced " +
				"when it is gone. If the machine is lost, delete Node node-1; if you know that slurmd does not run there any more, delete the pod with --force"},
		{name: "a Kubernetes node that is not ready is told", w: registered(func(w *workerplan.Worker) { w.Host.Ready = node.No }),
			trouble: "KubernetesNodeNotReady Kubernetes node node-1 is not ready; slurmd and jobs may still run there, so nothing is deleted. If the machine is lost, " +
				"delete Node node-1: its pods are deleted with it, and created again elsewhere"},
		{name: "a Kubernetes node of which nothing is known is not told", w: registered(func(w *workerplan.Worker) { w.Host.Ready = node.Unknown })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(tt.w)
			if text := troubles(got); text != tt.trouble || !got.Again.Equal(tt.again) {
				t.Errorf("trouble %q, want %q; again %v", text, tt.trouble, got.Again)
			}
		})
	}
}

func TestANodeThatWeSetDownIsUsedAgain(t *testing.T) {
	down := func(reason string, started time.Time, state ...string) workerplan.Worker {
		return registered(func(w *workerplan.Worker) {
			w.State, w.Reason, w.Record.Started = node.Parse(append(state, "DOWN")), node.Reason{Text: reason, At: noon.Add(-time.Hour)}, started
		})
	}
	const ours = "slurm-operator: Pod is terminating"
	tests := []struct {
		name string
		w    workerplan.Worker
		want bool
	}{
		{"a node is used again when another slurmd stands behind it", down(ours, noon), true},
		{"a node is not used again while the slurmd behind it is the old one", down(ours, noon.Add(-2*time.Hour)), false},
		{"a node is not used again when somebody else set it down", down("bad disk", noon), false},
		{"a node is not used again while it does not respond", down(ours, noon, "NOT_RESPONDING"), false},
		{"a node is not used again when it is not down", registered(), false},
		{"a node is used again with a drain that nobody wants any more, which Slurm ends as well", down(ours, noon, "DRAIN"), true},
		{"a node is not used again while the pod is cordoned, whose drain Slurm would end", cordonedToo(down(ours, noon, "DRAIN")), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := workerplan.Next(tt.w); got.StateChange.Revive != tt.want || got.StateChange.Drain != "" || got.StateChange.Undrain {
				t.Errorf("%+v", got)
			}
		})
	}
}

func cordonedToo(w workerplan.Worker) workerplan.Worker {
	w.Pod.Cordoned = true
	return w
}

func TestThePodForgetsItsPlaceWhenSlurmShowsAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		option  func(*workerplan.Worker)
		forgets bool
	}{
		"Slurm shows another place":                         {func(*workerplan.Worker) {}, true},
		"Slurm was asked before the node was put there":     {func(w *workerplan.Worker) { w.Recorded = noon.Add(time.Millisecond) }, false},
		"the node is being put there":                       {func(w *workerplan.Worker) { w.Recording = true }, false},
		"Slurm was asked after the node had been put there": {func(w *workerplan.Worker) { w.Recorded = noon.Add(-time.Millisecond) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := workerplan.Next(registered(placedBefore("topo:s3"), tc.option))
			if forgets := got.Marks.Topology != nil && *got.Marks.Topology == ""; forgets != tc.forgets {
				t.Errorf("the pod forgets its place: %t", forgets)
			}
		})
	}
}
