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

// TestEphemeralStorageOfThePod goes through docs/contributors/predecessors/soperator-health.md#ephemeral-storage. What is not known changes
// nothing.
func TestEphemeralStorageOfThePod(t *testing.T) {
	const (
		cordon      = "slurm-operator: Node was cordoned"
		maintenance = node.MaintenanceReason + ": NebiusMaintenanceScheduled"
		soperators  = "[user_problem] pod_ephemeral_storage 87.31 run fs_usage.sh -l"
		message     = "the ephemeral storage of the pod is nearly used up"
		over        = "nobody wants the node drained any more"
	)
	full := health.Storage{Full: node.Yes, Percent: 90, Resume: 80}
	waits := health.Storage{Full: node.Yes, Percent: 90, Resume: 80, Waits: true}
	free, unknown := health.Storage{Full: node.No, Resume: 80}, health.Storage{Resume: 80}
	reason := full.DrainReason()
	for _, tt := range []struct {
		name        string
		storage     health.Storage
		maintenance health.Maintenance
		cordoned    node.Answer
		state       string
		reason      string
		pod         workerpod.Pod
		drain       string
		undrain     bool
		message     string
	}{
		{name: "the node of a pod with full storage drains", storage: full, cordoned: node.No, state: "MIXED", pod: aPod(1), drain: reason, message: message},
		{name: "the node does not drain before the disruption budget lets it", storage: waits, cordoned: node.No, state: "MIXED", pod: aPod(1)},
		{name: "the node drains once, whatever the percentage is", storage: full, cordoned: node.No, state: "IDLE DRAIN", reason: node.StorageReason + " 85 % of its limit used", pod: aPod(1), message: message},
		{name: "the node does not drain again when Soperator has drained it", storage: full, cordoned: node.No, state: "IDLE DRAIN", reason: soperators, pod: aPod(1), message: message},
		{name: "an administrator's drain stays", storage: full, cordoned: node.No, state: "IDLE DRAIN", reason: "bad disk", pod: aPod(1)},
		{name: "the drain of a check stays", storage: full, cordoned: node.No, state: "IDLE DRAIN", reason: "[user_problem] boot_disk_full: 95 %", pod: aPod(1)},
		{name: "a node that is DOWN does not drain", storage: full, cordoned: node.No, state: "DOWN", reason: "Not responding", pod: aPod(1)},
		{name: "the drain for the retirement of the worker stays", storage: full, cordoned: node.No, state: "MIXED DRAIN", reason: drainReason, pod: aPod(1, scaledIn), message: "waiting for jobs to end"},
		{name: "the drain for storage gives way to maintenance", storage: full, maintenance: health.Maintenance{Type: "NebiusMaintenanceScheduled", Message: "on Friday"}, cordoned: node.No, state: "IDLE DRAIN", reason: reason, pod: aPod(1), drain: maintenance, message: "Kubernetes node node-1 has condition NebiusMaintenanceScheduled: on Friday"},
		{name: "the drain for storage follows on maintenance", storage: full, cordoned: node.No, state: "IDLE DRAIN", reason: maintenance, pod: aPod(1), drain: reason, message: message},
		{name: "the drain for storage follows on a cordon", storage: full, cordoned: node.No, state: "IDLE DRAIN", reason: cordon, pod: aPod(1), drain: reason, message: message},
		{name: "a cordon does not change the reason", storage: full, cordoned: node.Yes, state: "IDLE DRAIN", reason: reason, pod: aPod(1), message: message},
		{name: "a cordon that remains keeps the node", storage: free, cordoned: node.Yes, state: "IDLE DRAIN", reason: reason, pod: aPod(1), drain: cordon, message: "Kubernetes node node-1 is cordoned"},
		{name: "the node comes back when enough is free", storage: free, cordoned: node.No, state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: over},
		{name: "the node comes back from the drain of Soperator, too", storage: free, cordoned: node.No, state: "IDLE DRAIN", reason: soperators, pod: aPod(1), undrain: true, message: over},
		{name: "the node does not come back while the kubelet does not answer", storage: unknown, cordoned: node.No, state: "IDLE DRAIN", reason: reason, pod: aPod(1), message: message},
		{name: "the node does not come back where nobody measures", cordoned: node.No, state: "IDLE DRAIN", reason: soperators, pod: aPod(1), message: message},
		{name: "the node does not come back before the pod is ready", storage: free, cordoned: node.No, state: "IDLE DRAIN", reason: reason, pod: aPod(1, unready)},
		{name: "a kubelet that does not answer drains nothing", storage: unknown, cordoned: node.No, state: "IDLE", pod: aPod(1)},
		{name: "a cordon ends although the kubelet does not answer", storage: unknown, cordoned: node.No, state: "IDLE DRAIN", reason: cordon, pod: aPod(1), undrain: true, message: over},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: "slurm", At: noon}},
				Pod:       tt.pod,
				Host:      workerplan.Host{Name: "node-1", Cordoned: tt.cordoned, Maintenance: tt.maintenance},
				Storage:   tt.storage,
			})
			if got.StateChange.Drain != tt.drain || got.StateChange.Undrain != tt.undrain || got.Shown.Message != tt.message || got.Deletion.Delete {
				t.Errorf("drain %q, undrain %v, message %q, delete %v", got.StateChange.Drain, got.StateChange.Undrain, got.Shown.Message, got.Deletion.Delete)
			}
		})
	}
}
