// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestMaintenanceOfTheKubernetesNode goes through docs/contributors/predecessors/soperator-health.md#announced-maintenance. The node comes
// back when the last cause is gone.
func TestMaintenanceOfTheKubernetesNode(t *testing.T) {
	const (
		reason  = node.MaintenanceReason + ": NebiusMaintenanceScheduled"
		former  = "[node_problem] compute_maintenance: node replacement process"
		cordon  = "slurm-operator: Node was cordoned"
		message = "Kubernetes node node-1 has condition NebiusMaintenanceScheduled: on Friday"
	)
	announced := health.Maintenance{Type: "NebiusMaintenanceScheduled", Message: "on Friday"}
	over, unknown := health.Maintenance{}, health.Maintenance{Unknown: true}
	for _, tt := range []struct {
		name        string
		maintenance health.Maintenance
		cordoned    node.Answer
		state       string
		reason      string
		pod         workerpod.Pod
		drain       string
		undrain     bool
		message     string
	}{
		{name: "the workers of a machine with announced maintenance drain", maintenance: announced, state: "MIXED", pod: aPod(1), drain: reason, message: message},
		{name: "the workers drain once", maintenance: announced, state: "MIXED DRAIN", reason: reason, pod: aPod(1), message: message},
		{name: "the workers do not drain again when Soperator has drained them", maintenance: announced, state: "IDLE DRAIN", reason: former, pod: aPod(1), message: message},
		{name: "an administrator's drain stays", maintenance: announced, state: "IDLE DRAIN", reason: "bad disk", pod: aPod(1), message: message},
		{name: "the drain of a check stays", maintenance: announced, state: "IDLE DRAIN", reason: "[node_problem] gpu_health_check: XID 79", pod: aPod(1), message: message},
		{name: "the drain for the retirement of the worker stays", maintenance: announced, state: "MIXED DRAIN", reason: drainReason, pod: aPod(1, scaledIn), message: "waiting for jobs to end"},
		{name: "a cordon before maintenance gives way to it", maintenance: announced, cordoned: node.Yes, state: "IDLE DRAIN", reason: cordon, pod: aPod(1), drain: reason, message: message},
		{name: "a cordon that remains keeps the node", maintenance: over, cordoned: node.Yes, state: "IDLE DRAIN", reason: reason, pod: aPod(1), drain: cordon, message: "Kubernetes node node-1 is cordoned"},
		{name: "the node comes back when maintenance is over", maintenance: over, state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: "nobody wants the node drained any more"},
		{name: "the node comes back from the drain of Soperator, too", maintenance: over, state: "IDLE DRAIN", reason: former, pod: aPod(1), undrain: true, message: "nobody wants the node drained any more"},
		{name: "the node does not come back while nobody knows whether maintenance is over", maintenance: unknown, state: "IDLE DRAIN", reason: reason, pod: aPod(1)},
		{name: "the node does not come back while nothing is known of the Kubernetes node", maintenance: over, cordoned: node.Unknown, state: "IDLE DRAIN", reason: reason, pod: aPod(1)},
		{name: "the node does not come back before the pod is ready", maintenance: over, state: "IDLE DRAIN", reason: reason, pod: aPod(1, unready)},
		{name: "a drain that nobody knows about is none", maintenance: unknown, state: "IDLE", pod: aPod(1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cordoned := tt.cordoned
			if cordoned == node.Unknown && !strings.HasPrefix(tt.name, "the node does not come back while nothing") {
				cordoned = node.No
			}
			got := workerplan.Next(workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: "slurm", At: noon}},
				Pod:       tt.pod,
				Host:      workerplan.Host{Name: "node-1", Cordoned: cordoned, Maintenance: tt.maintenance},
			})
			if got.StateChange.Drain != tt.drain || got.StateChange.Undrain != tt.undrain || got.Shown.Message != tt.message || got.Marks.NodeMark != cordoned || got.Deletion.Delete {
				t.Errorf("drain %q, undrain %v, message %q, mark %v, delete %v", got.StateChange.Drain, got.StateChange.Undrain, got.Shown.Message, got.Marks.NodeMark, got.Deletion.Delete)
			}
		})
	}
}
