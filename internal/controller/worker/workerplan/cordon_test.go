// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestACordonOfTheKubernetesNode goes through docs/contributors/predecessors/slinky-workers.md#cordons from the side of the Kubernetes
// node.
func TestACordonOfTheKubernetesNode(t *testing.T) {
	const nodeReason = "slurm-operator: Node was cordoned"
	ours := node.Reason{Text: nodeReason, SetBy: "slurm", At: noon}
	admins := node.Reason{Text: "bad disk", SetBy: "root", At: noon}
	const yes, no, unknown = node.Yes, node.No, node.Unknown
	tests := []struct {
		name     string
		cordoned node.Answer
		why      string
		marked   bool
		state    string
		reason   node.Reason
		pod      workerpod.Pod
		drain    string
		undrain  bool
		mark     node.Answer
	}{
		{name: "a cordoned Kubernetes node drains", cordoned: yes, state: "MIXED", pod: aPod(1), drain: nodeReason, mark: yes},
		{name: "a cordoned Kubernetes node drains with the reason that its annotation gives", cordoned: yes, why: "RMA\n4711", state: "MIXED", pod: aPod(1), drain: "slurm-operator: RMA4711", mark: yes},
		{name: "a cordoned Kubernetes node drains once", cordoned: yes, why: "later words", marked: true, state: "MIXED DRAIN", reason: ours, pod: aPod(1, cordoned), mark: yes},
		{name: "a cordoned Kubernetes node drains also where a user had cordoned the pod before", cordoned: yes, state: "IDLE", pod: aPod(1, cordoned), drain: nodeReason, mark: yes},
		{name: "a cordon does not take over an administrator's drain", cordoned: yes, state: "IDLE DRAIN", reason: admins, pod: aPod(1), mark: yes},
		{name: "a cordon does not take over an administrator's drain without a reason", cordoned: yes, state: "IDLE DRAIN", pod: aPod(1), mark: yes},
		{name: "a cordon does not drain a node that Slurm gave up", cordoned: yes, state: "DOWN NOT_RESPONDING", reason: node.Reason{Text: "Not responding"}, pod: aPod(1), mark: yes},
		{name: "a retired worker keeps the reason for its retirement", cordoned: yes, state: "MIXED", pod: aPod(1, scaledIn), drain: drainReason, mark: yes},

		{name: "the mark goes before the drain does", cordoned: no, marked: true, state: "IDLE DRAIN", reason: ours, pod: aPod(1, cordoned), mark: no},
		{name: "the drain goes when the mark has gone", cordoned: no, state: "IDLE DRAIN", reason: ours, pod: aPod(1), undrain: true, mark: no},
		{name: "the drain stays when a user has cordoned the pod too", cordoned: no, state: "IDLE DRAIN", reason: ours, pod: aPod(1, cordoned), mark: no},
		{name: "a drain stays when an administrator has given another reason since", cordoned: no, state: "IDLE DRAIN", reason: admins, pod: aPod(1), mark: no},
		{name: "the drain stays while the node does not respond", cordoned: no, state: "IDLE DRAIN NOT_RESPONDING", reason: ours, pod: aPod(1), mark: no},
		{name: "the drain stays while the node is down", cordoned: no, state: "DOWN DRAIN", reason: ours, pod: aPod(1), mark: no},

		{name: "nothing changes while nothing is known of the Kubernetes node", cordoned: unknown, marked: true, state: "IDLE DRAIN", reason: ours, pod: aPod(1), mark: unknown},
		{name: "while nothing is known of the Kubernetes node, a cordoned pod drains", cordoned: unknown, state: "IDLE", pod: aPod(1, cordoned), drain: cordonReason, mark: unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(workerplan.Worker{
				Now:        noon,
				SlurmView:  workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: tt.reason},
				Pod:        tt.pod,
				Host:       workerplan.Host{Name: "node-1", Cordoned: tt.cordoned, CordonReason: tt.why},
				NodeMarked: tt.marked,
			})
			got.Shown.OutOfService = workerplan.OutOfService{} // TestWhoKeepsJobsFromANode
			want := wanted{
				Drain: tt.drain, Undrain: tt.undrain, NodeMark: tt.mark,
				WantJobs: got.Questions.WantJobs, DeadlineKnown: got.Marks.DeadlineKnown, Protected: node.No, Announce: got.Announce, Conditions: got.Shown.Conditions, ConditionsKnown: true, Message: got.Shown.Message,
			}
			if diff := want.diff(got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The write that takes the mark off also protects what comes back after a cordon.
func TestTheProtectionComesBackAsTheMarkGoes(t *testing.T) {
	ours := node.Reason{Text: "slurm-operator: Node was cordoned", SetBy: "slurm", At: noon}
	admins := node.Reason{Text: "bad disk", SetBy: "root", At: noon}
	for _, tt := range []struct {
		name   string
		marked bool
		state  string
		reason node.Reason
		pod    workerpod.Pod
		want   node.Answer
	}{
		{name: "the node is about to be used", marked: true, state: "IDLE DRAIN", reason: ours, pod: aPod(1, cordoned), want: node.Yes},
		{name: "a user has cordoned the pod, too", state: "IDLE DRAIN", reason: ours, pod: aPod(1, cordoned), want: node.No},
		{name: "an administrator has drained the node", marked: true, state: "IDLE DRAIN", reason: admins, pod: aPod(1, cordoned), want: node.No},
		{name: "the worker is retired", marked: true, state: "IDLE DRAIN", reason: ours, pod: aPod(1, scaledIn), want: node.No},
		{name: "the worker is not ready", marked: true, state: "IDLE DRAIN", reason: ours, pod: aPod(1, cordoned, unready), want: node.No},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(workerplan.Worker{
				Now:        noon,
				SlurmView:  workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: tt.reason, JobsKnown: node.Yes},
				Pod:        tt.pod,
				Host:       workerplan.Host{Name: "node-1", Cordoned: node.No},
				NodeMarked: tt.marked,
				Wanted:     workerplan.Wanted{Protection: workerpod.UntilDrained},
			})
			if got.Marks.Protected != tt.want || got.Marks.NodeMark != node.No || got.StateChange.Opens() {
				t.Errorf("protected: %v, mark: %v, opens: %v", got.Marks.Protected, got.Marks.NodeMark, got.StateChange.Opens())
			}
		})
	}
}

func TestThePodIsMarkedEvenWhileSlurmIsSilent(t *testing.T) {
	got := workerplan.Next(workerplan.Worker{Now: noon, Pod: aPod(1), SlurmView: workerplan.SlurmView{Why: "silence"}, Host: workerplan.Host{Name: "node-1", Cordoned: node.Yes}})
	if got.Marks.NodeMark != node.Yes || got.StateChange.Drain != "" {
		t.Errorf("%+v", got)
	}
}
