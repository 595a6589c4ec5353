// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestTheMachineOfAWorkerIsToBeRebooted goes through docs/contributors/predecessors/soperator-health.md#reboot-of-a-machine.
func TestTheMachineOfAWorkerIsToBeRebooted(t *testing.T) {
	const (
		kill     = "Kill task failed"
		reason   = node.RebootReason
		former   = "[compute_maintenance] node reboot process"
		replaced = node.MaintenanceReason + ": M"
		cordon   = "slurm-operator: Node was cordoned"
		message  = "Kubernetes node node-1 is to be rebooted"
		back     = "nobody wants the node drained any more"
	)
	afterKill, at := node.RebootAfterKillTask(), noon.Add(-10*time.Minute)
	wanted := health.Reboot{Watched: true, Wanted: true, Since: at.Add(-time.Second)}
	rebooted := health.Reboot{Watched: true, Rebooted: true, Since: noon.Add(-time.Minute)}
	withdrawn := health.Reboot{Watched: true, Since: noon.Add(-time.Minute)}
	never := health.Reboot{Watched: true}
	for _, tt := range []struct {
		name        string
		reboot      health.Reboot
		maintenance string
		cordoned    bool
		state       string
		reason      string
		pod         workerpod.Pod
		drain       string
		undrain     bool
		message     string
		out         string
	}{
		{name: "a drain for Kill task failed is Slurm's as long as no reboot is wanted", reboot: never, state: "IDLE DRAIN", reason: kill, pod: aPod(1), out: "KillTaskFailed"},
		{name: "a drain for Kill task failed becomes ours when a reboot is wanted", reboot: wanted, state: "IDLE DRAIN", reason: kill, pod: aPod(1), drain: afterKill, message: message, out: "KillTaskFailed"},
		{name: "a drain for Kill task failed of a node that is DOWN becomes ours when a reboot is wanted", reboot: wanted, state: "DOWN DRAIN NOT_RESPONDING", reason: kill + " : Not responding", pod: aPod(1), drain: afterKill, message: message, out: "KillTaskFailed"},
		{name: "a drain for Kill task failed becomes ours once", reboot: wanted, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), message: message, out: "Reboot"},
		{name: "a drain for Kill task failed that the pod has brought along does not become ours", reboot: wanted, state: "IDLE DRAIN", reason: kill, pod: aPod(1, createdBefore(time.Minute)), message: message, out: "KillTaskFailed"},
		{name: "a worker with jobs drains when a reboot is wanted", reboot: wanted, state: "ALLOCATED", pod: aPod(1), drain: reason, message: message},
		{name: "a worker that drains for a reboot is drained once", reboot: wanted, state: "ALLOCATED DRAIN", reason: reason, pod: aPod(1), message: message, out: "Reboot"},
		{name: "a reboot does not take over a drain of Soperator, of which nobody knows what it was for", reboot: wanted, state: "IDLE DRAIN", reason: former, pod: aPod(1), message: message, out: "HeldBySomebody"},
		{name: "a reboot does not take over an administrator's drain", reboot: wanted, state: "IDLE DRAIN", reason: "bad disk", pod: aPod(1), message: message, out: "HeldBySomebody"},
		{name: "a cordon before the reboot gives way to it", reboot: wanted, cordoned: true, state: "IDLE DRAIN", reason: cordon, pod: aPod(1), drain: reason, message: message, out: "Reboot"},
		{name: "maintenance before the reboot gives way to it", reboot: wanted, maintenance: "M", state: "IDLE DRAIN", reason: replaced, pod: aPod(1), drain: reason, message: message, out: "Reboot"},
		{name: "maintenance that remains keeps the node", reboot: rebooted, maintenance: "M", state: "IDLE DRAIN", reason: reason, pod: aPod(1), drain: replaced, message: "Kubernetes node node-1 has condition M: ", out: "Maintenance"},
		{name: "maintenance that remains does not take over the drain for a process that could not be ended", reboot: withdrawn, maintenance: "M", state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), message: "Kubernetes node node-1 has condition M: ", out: "Reboot"},
		{name: "a worker that is drained for a reboot comes back after it", reboot: rebooted, state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "the worker with the process comes back after the reboot", reboot: rebooted, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "a worker that is drained for a reboot comes back when no reboot is wanted any more", reboot: withdrawn, state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "the worker with the process does not come back without a reboot", reboot: withdrawn, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), out: "Reboot"},
		{name: "the next pod of the worker with the process does not come back on the same machine without a reboot", reboot: withdrawn, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1, createdBefore(5*time.Minute)), out: "Reboot"},
		{name: "the next pod of the worker with the process comes back on another machine", reboot: never, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1, createdBefore(5*time.Minute)), undrain: true, message: back, out: "Returning"},
		{name: "a worker stays drained for a reboot while nobody knows whether the reboot is wanted", reboot: health.Reboot{Watched: true, Unknown: true}, state: "IDLE DRAIN", reason: reason, pod: aPod(1), out: "Reboot"},
		{name: "where degraded nodes are not rebooted, a drain for that ends", state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "where degraded nodes are not rebooted, the drain for a process stays for a person", state: "IDLE DRAIN", reason: afterKill, pod: aPod(1, createdBefore(5*time.Minute)), out: "Reboot"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: "slurm", At: at}},
				Pod:       tt.pod,
				Slurm:     "w-1",
				Host: workerplan.Host{
					Name: "node-1", Cordoned: node.AnswerOf(tt.cordoned), Maintenance: health.Maintenance{Type: tt.maintenance}, Reboot: tt.reboot,
				},
			})
			if got.StateChange.Drain != tt.drain || got.StateChange.Undrain != tt.undrain || got.Shown.Message != tt.message || got.Shown.OutOfService.Reason != tt.out || got.StateChange.Revive || got.Deletion.Delete {
				t.Errorf("drain %q, undrain %v, message %q, out of service %+v", got.StateChange.Drain, got.StateChange.Undrain, got.Shown.Message, got.Shown.OutOfService)
			}
		})
	}
}
