// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

const forMaintenance = node.MaintenanceReason + ": NebiusMaintenanceScheduled"

// TestWhenTheNodeOfAMachineIsDeleted goes through docs/contributors/predecessors/soperator-health.md#announced-maintenance and
// docs/contributors/predecessors/soperator-health.md#replacement-of-a-machine.
func TestWhenTheNodeOfAMachineIsDeleted(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	announced := health.Maintenance{Type: "NebiusMaintenanceScheduled"}
	drained, busy := aWorker("w-0", "IDLE DRAIN", forMaintenance), aWorker("w-1", "MIXED DRAIN", forMaintenance)
	protected, silent, going, absent := drained, drained, busy, busy
	protected.Protected, silent.Known, silent.State = true, node.Unknown, node.State{}
	going.State, going.Protected, going.Leaving = drained.State, true, true
	absent.Known, absent.State, absent.Jobless = node.No, node.State{}, node.Unknown
	suspended, unasked := drained, drained
	suspended.Jobless, unasked.Jobless = node.No, node.Unknown
	foreign, foreignBusy := drained, busy
	foreign.Foreign, foreignBusy.Foreign = true, true
	ready := health.Rebooter{Exists: true, Ready: ago(time.Hour)}
	draining, needsDrain := aCondition(yes, "NodeDraining", time.Minute), aCondition(yes, "NodeNeedDrain", time.Minute)
	nodeDrained := aCondition(yes, "NodeDrained", time.Minute)
	with := func(w ...health.Worker) []health.Worker { return w }
	for _, tt := range []struct {
		name string
		node health.Node
		want string
	}{
		{"a node in service is left alone", health.Node{Workers: with(aWorker("w-0", "IDLE", "")), Rebooter: ready}, ""},
		{"a node that is drained by a person is left alone", health.Node{Workers: with(aWorker("w-0", "IDLE DRAIN", "bad disk")), Rebooter: ready, Drain: nodeDrained}, ""},
		{"a node without workers is not ours, whatever is announced", health.Node{Maintenance: announced, Rebooter: ready, Drain: nodeDrained}, ""},
		{"a node with workers of others alone is not ours, and may not be deleted for them", health.Node{Maintenance: announced, Workers: with(foreign), Rebooter: ready, Drain: nodeDrained}, ""},
		{"jobs of others end first", health.Node{Maintenance: announced, Workers: with(drained, foreignBusy), Rebooter: ready}, ""},
		{"jobs end first", health.Node{Maintenance: announced, Workers: with(drained, busy), Rebooter: ready}, ""},
		{"a protected pod may have suspended jobs", health.Node{Maintenance: announced, Workers: with(protected), Rebooter: ready}, ""},
		{"a pod without protection may have suspended jobs", health.Node{Maintenance: announced, Workers: with(drained, suspended), Rebooter: ready}, ""},
		{"a node stays while nobody knows whether a job is suspended", health.Node{Maintenance: announced, Workers: with(unasked), Rebooter: ready}, ""},
		{"a protected pod that is being deleted already is not waited for", health.Node{Maintenance: announced, Workers: with(going), Rebooter: ready}, "maintained True/NodeDraining, event NodeMaintenance"},
		{"a Slurm that does not answer is waited for", health.Node{Maintenance: announced, Workers: with(silent), Rebooter: ready}, ""},
		{"a check's drain becomes ours first", health.Node{Maintenance: health.Maintenance{Type: "HardwareIssuesSuspected", Suspected: true}, Suspected: aCondition(yes, "GPUHealthCheckFailedSoperator", time.Minute), Workers: with(aWorker("w-0", "IDLE DRAIN", "[hardware_problem] gpu: Xid 79")), Rebooter: ready}, ""},
		{"when a check's drain is ours the machine may go", health.Node{Maintenance: health.Maintenance{Type: "HardwareIssuesSuspected", Suspected: true}, Suspected: aCondition(yes, "GPUHealthCheckFailedSoperator", time.Minute), Workers: with(aWorker("w-0", "IDLE DRAIN", node.ReplacementAfterCheck("[hardware_problem] gpu: Xid 79"))), Rebooter: ready}, "maintained True/NodeDraining, event NodeMaintenance"},
		{"a worker that takes jobs may get one", health.Node{Maintenance: announced, Workers: with(aWorker("w-0", "IDLE", "")), Rebooter: ready}, ""},
		{"when jobs have ended the node says so", health.Node{Maintenance: announced, Workers: with(drained, absent), Rebooter: ready}, "maintained True/NodeDraining, event NodeMaintenance"},
		{"when Slurm has given up the worker the node says so", health.Node{Maintenance: announced, Workers: with(aWorker("w-0", "DOWN NOT_RESPONDING", "Not responding")), Rebooter: ready}, "maintained True/NodeDraining, event NodeMaintenance"},
		{"when the node says that it drains the rebooter is asked", health.Node{Maintenance: announced, Workers: with(drained), Rebooter: ready, Maintained: draining}, "maintained True/NodeNeedDrain, drain True/NodeNeedDrain"},
		{"a rebooter that has just become ready is not asked", health.Node{Maintenance: announced, Workers: with(drained), Rebooter: health.Rebooter{Exists: true, Ready: ago(4 * time.Second)}, Maintained: draining}, "event NoRebooter, again in 6s"},
		{"without a rebooter nothing is deleted", health.Node{Maintenance: announced, Workers: with(drained), Maintained: draining}, "event NoRebooter"},
		{"a drain that somebody else has asked for is as good", health.Node{Maintenance: announced, Workers: with(drained), Rebooter: ready, Maintained: draining, Drain: needsDrain}, ""},
		{"the rebooter is awaited", health.Node{Maintenance: announced, Rebooter: ready, Maintained: needsDrain, Drain: draining}, ""},
		{"when the rebooter has drained it the Node is deleted", health.Node{Maintenance: announced, Rebooter: ready, Maintained: needsDrain, Drain: nodeDrained}, "delete, event NodeReplaced"},
		{"a Node is not deleted while a worker that came back takes jobs", health.Node{Maintenance: announced, Workers: with(aWorker("w-0", "IDLE", "")), Rebooter: ready, Maintained: needsDrain, Drain: nodeDrained}, ""},
		{"a Node is not deleted while it is Unknown whether a maintenance is announced", health.Node{Maintenance: health.Maintenance{Unknown: true}, Rebooter: ready, Maintained: needsDrain, Drain: nodeDrained}, ""},
		{"a Node is not deleted while it is Unknown what was asked of the rebooter", health.Node{Maintenance: announced, Rebooter: ready, Maintained: needsDrain, Drain: aCondition(unknown, "Lost", time.Minute)}, ""},
		{"a Node is not deleted while a reboot that a person has asked for is under way", health.Node{Maintenance: announced, Rebooter: ready, Maintained: needsDrain, Drain: nodeDrained, Reboot: aCondition(yes, "NodeRebooting", time.Minute)}, ""},
		{"nothing is asked for while the machine is to be rebooted", health.Node{Maintenance: announced, Workers: with(drained), Rebooter: ready, Degraded: aCondition(yes, "SlurmNodeDegraded", time.Minute)}, ""},
		{"a Node is not deleted twice", health.Node{Leaving: true, Maintenance: announced, Rebooter: ready, Maintained: needsDrain, Drain: nodeDrained}, ""},
		{"a maintenance that is over is taken back, with the drain that it asked for", health.Node{Workers: with(drained), Rebooter: ready, Maintained: needsDrain, Drain: nodeDrained}, "maintained False/NodeUndrained, drain False/NodeUndrained, event NodeMaintenanceOver"},
		{"a maintenance that is over is taken back, without a drain that somebody else has asked for", health.Node{Workers: with(drained), Rebooter: ready, Maintained: draining, Drain: nodeDrained}, "maintained False/NodeUndrained, event NodeMaintenanceOver"},
		{"a maintenance that was over before is not taken back again", health.Node{Workers: with(drained), Rebooter: ready, Maintained: aCondition(no, "NodeUndrained", time.Minute)}, ""},
		{"a node that is not ready is no maintenance that a rebooter could do anything about", health.Node{Maintenance: health.Maintenance{Type: "SlurmNodeNotReady"}, Workers: with(drained), Rebooter: ready}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.node.Now = noon
			if got := short(health.Decide(tt.node)); got != "" {
				t.Errorf("without --enable-node-replacement it does %q", got)
			}
			tt.node.Replaces = true
			if got := short(health.Decide(tt.node)); got != tt.want {
				t.Errorf("it does %q, want %q", got, tt.want)
			}
		})
	}
}

// TestWhenANodeThatIsNotReadyIsDeleted goes through
// docs/contributors/predecessors/soperator-health.md#kubernetes-nodes-that-are-not-ready.
func TestWhenANodeThatIsNotReadyIsDeleted(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	late, marked := aCondition(unknown, "NodeStatusUnknown", 15*time.Minute), aCondition(yes, "NodeNotReady", time.Minute)
	down, idle := aWorker("w-0", "DOWN NOT_RESPONDING", "Not responding"), aWorker("w-1", "IDLE", "")
	both, foreign := []health.Worker{down, idle}, down
	foreign.Foreign = true
	for _, tt := range []struct {
		name string
		node health.Node
		want string
	}{
		{"a node that is ready is left alone", health.Node{Ready: aCondition(yes, "KubeletReady", time.Hour), Workers: both}, ""},
		{"a node that does not say whether it is ready is not known", health.Node{Workers: both}, ""},
		{"a node that is not ready has fifteen minutes", health.Node{Ready: aCondition(no, "KubeletNotReady", 14*time.Minute), Workers: both}, "again in 1m0s"},
		{"a node without workers is not ours", health.Node{Ready: late}, ""},
		{"a node with workers of others alone is not ours, and may not be deleted for them", health.Node{Ready: late, Workers: []health.Worker{foreign}}, ""},
		{"a node with a label that is ignored is left alone", health.Node{Ready: late, Ignored: true, Workers: both}, ""},
		{"a node that is not ready for fifteen minutes is marked, so that its workers drain", health.Node{Ready: late, Workers: both}, "not ready True/NodeNotReady, event NodeNotReady"},
		{"a node is marked whether Kubernetes says False or Unknown", health.Node{Ready: aCondition(no, "KubeletNotReady", time.Hour), Workers: both}, "not ready True/NodeNotReady, event NodeNotReady"},
		{"one of two nodes that are not ready is marked", health.Node{Ready: late, Workers: both, Others: health.Others{All: 3, Unready: 1}}, "not ready True/NodeNotReady, event NodeNotReady"},
		{"a node is not marked when more than half are not ready", health.Node{Ready: late, Workers: both, Others: health.Others{All: 3, Unready: 2}}, "event TooManyNotReady"},
		{"a node is not marked while another one of a few is being replaced", health.Node{Ready: late, Workers: both, Others: health.Others{All: 9, Unready: 1, NotReady: 1}}, "event TooManyNotReady"},
		{"a node is marked while another one of many is being replaced", health.Node{Ready: late, Workers: both, Others: health.Others{All: 19, Unready: 1, NotReady: 1}}, "not ready True/NodeNotReady, event NodeNotReady"},
		{"a worker that still takes jobs is waited for", health.Node{Ready: late, NotReady: marked, Workers: both}, ""},
		{"jobs of a machine whose kubelet has died run on", health.Node{Ready: late, NotReady: marked, Workers: []health.Worker{aWorker("w-0", "ALLOCATED DRAIN", forMaintenance)}}, ""},
		{"when no job is left the Node is deleted", health.Node{Ready: late, NotReady: marked, Workers: []health.Worker{down, aWorker("w-1", "IDLE DRAIN", forMaintenance)}}, "delete, event NodeReplaced"},
		{"when no pod is left the Node is deleted", health.Node{Ready: late, NotReady: marked}, "delete, event NodeReplaced"},
		{"a Node is not deleted when most of the others have followed", health.Node{Ready: late, NotReady: marked, Workers: []health.Worker{down}, Others: health.Others{All: 3, Unready: 2}}, "event TooManyNotReady"},
		{"a Node is not deleted when it has been ready in between", health.Node{Ready: aCondition(no, "KubeletNotReady", time.Minute), NotReady: marked, Workers: []health.Worker{down}}, "again in 14m0s"},
		{"a node that is ready again is back", health.Node{Ready: aCondition(yes, "KubeletReady", time.Second), NotReady: marked, Workers: both}, "not ready False/NodeReady, event NodeReady"},
		{"a Node that is being deleted goes", health.Node{Leaving: true, Ready: late, NotReady: marked}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.node.Now = noon
			if got := short(health.Decide(tt.node)); got != "" {
				t.Errorf("without --delete-not-ready-nodes it does %q", got)
			}
			tt.node.NotReadyTimeout = health.DefaultNotReadyTimeout
			if got := health.Decide(tt.node); short(got) != tt.want {
				t.Errorf("it does %q, want %q", short(got), tt.want)
			}
		})
	}
}

// TestWhenAMachineIsSuspected goes through docs/contributors/predecessors/soperator-health.md#suspected-hardware.
func TestWhenAMachineIsSuspected(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	broken := aWorker("w-0", "IDLE DRAIN", "[hardware_problem] gpu_fallen_off: Xid 79")
	moved, running, foreign := broken, broken, broken
	foreign.Foreign = true
	moved.Created = ago(time.Minute)
	young := broken
	young.Created = ago(6 * time.Minute)
	running.State = node.Parse([]string{"MIXED", "DRAIN"})
	for _, tt := range []struct {
		name string
		node health.Node
		want string
	}{
		{"a machine is suspected by a failed check of hardware", health.Node{Workers: []health.Worker{aWorker("w-1", "ALLOCATED", ""), broken}}, "suspected True/GPUHealthCheckFailedSoperator, event HardwareIssuesSuspected"},
		{"a machine is not suspected by another check", health.Node{Workers: []health.Worker{aWorker("w-0", "IDLE DRAIN", "[node_problem] disk: full")}}, ""},
		{"a machine is not suspected by a drain of a person", health.Node{Workers: []health.Worker{aWorker("w-0", "IDLE DRAIN", "gpu looks odd")}}, ""},
		{"a machine is not suspected by a drain that the pod has brought along", health.Node{Workers: []health.Worker{moved}}, ""},
		{"a machine is not suspected by a drain that looks a little younger than the pod, by clocks that differ", health.Node{Workers: []health.Worker{young}}, ""},
		{"a machine is not suspected while a job runs there", health.Node{Workers: []health.Worker{running}}, ""},
		{"a machine is not suspected for a worker for which no machine may be replaced", health.Node{Workers: []health.Worker{foreign}}, ""},
		{"a machine is not suspected when that is said already", health.Node{Workers: []health.Worker{broken}, Suspected: aCondition(yes, "Cloud", time.Hour)}, ""},
		{"a machine is not suspected when who says it cannot tell", health.Node{Workers: []health.Worker{broken}, Suspected: aCondition(unknown, "Cloud", time.Hour)}, ""},
		{"a machine is suspected again when somebody has found nothing before", health.Node{Workers: []health.Worker{broken}, Suspected: aCondition(no, "Cloud", time.Hour)}, "suspected True/GPUHealthCheckFailedSoperator, event HardwareIssuesSuspected"},
		{"a machine is not suspected when somebody has found nothing since", health.Node{Workers: []health.Worker{broken}, Suspected: aCondition(no, "Cloud", time.Minute)}, ""},
		{"a machine is not suspected while another one of a few is", health.Node{Workers: []health.Worker{broken}, Others: health.Others{All: 9, Suspected: 1}}, "event TooManySuspected"},
		{"a machine with a label that is ignored is not suspected", health.Node{Ignored: true, Workers: []health.Worker{broken}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.node.Now = noon
			if got := short(health.Decide(tt.node)); got != "" {
				t.Errorf("without --enable-node-replacement it does %q", got)
			}
			tt.node.Replaces = true
			if got := short(health.Decide(tt.node)); got != tt.want {
				t.Errorf("it does %q, want %q", got, tt.want)
			}
		})
	}
}
