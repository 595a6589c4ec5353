// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/worker"
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
		pod         nodeset.Pod
		drain       string
		undrain     bool
		message     string
		out         string
	}{
		{name: "Kill task failed is Slurm's as long as no reboot is wanted", reboot: never, state: "IDLE DRAIN", reason: kill, pod: aPod(1), out: "KillTaskFailed"},
		{name: "its drain becomes ours when one is", reboot: wanted, state: "IDLE DRAIN", reason: kill, pod: aPod(1), drain: afterKill, message: message, out: "KillTaskFailed"},
		{name: "also of a node that is DOWN", reboot: wanted, state: "DOWN DRAIN NOT_RESPONDING", reason: kill + " : Not responding", pod: aPod(1), drain: afterKill, message: message, out: "KillTaskFailed"},
		{name: "once", reboot: wanted, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), message: message, out: "Reboot"},
		{name: "but not one that the pod has brought along", reboot: wanted, state: "IDLE DRAIN", reason: kill, pod: aPod(1, createdBefore(time.Minute)), message: message, out: "KillTaskFailed"},
		{name: "the other workers drain", reboot: wanted, state: "ALLOCATED", pod: aPod(1), drain: reason, message: message},
		{name: "once as well", reboot: wanted, state: "ALLOCATED DRAIN", reason: reason, pod: aPod(1), message: message, out: "Reboot"},
		{name: "not over a drain of Soperator, of which nobody knows what it was for", reboot: wanted, state: "IDLE DRAIN", reason: former, pod: aPod(1), message: message, out: "HeldBySomebody"},
		{name: "not over an administrator's drain", reboot: wanted, state: "IDLE DRAIN", reason: "bad disk", pod: aPod(1), message: message, out: "HeldBySomebody"},
		{name: "a cordon before it gives way to it", reboot: wanted, cordoned: true, state: "IDLE DRAIN", reason: cordon, pod: aPod(1), drain: reason, message: message, out: "Reboot"},
		{name: "so does maintenance", reboot: wanted, maintenance: "M", state: "IDLE DRAIN", reason: replaced, pod: aPod(1), drain: reason, message: message, out: "Reboot"},
		{name: "maintenance that remains keeps the node", reboot: rebooted, maintenance: "M", state: "IDLE DRAIN", reason: reason, pod: aPod(1), drain: replaced, message: "Kubernetes node node-1 has condition M: ", out: "Maintenance"},
		{name: "but not over a process that could not be ended", reboot: withdrawn, maintenance: "M", state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), message: "Kubernetes node node-1 has condition M: ", out: "Reboot"},
		{name: "after the reboot they come back", reboot: rebooted, state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "and the one with the process", reboot: rebooted, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "without a reboot the others come back", reboot: withdrawn, state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "but not the one with the process", reboot: withdrawn, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1), out: "Reboot"},
		{name: "nor its next pod there", reboot: withdrawn, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1, createdBefore(5*time.Minute)), out: "Reboot"},
		{name: "but its next pod on another machine", reboot: never, state: "IDLE DRAIN", reason: afterKill, pod: aPod(1, createdBefore(5*time.Minute)), undrain: true, message: back, out: "Returning"},
		{name: "not while it is not known whether one is wanted", reboot: health.Reboot{Watched: true, Unknown: true}, state: "IDLE DRAIN", reason: reason, pod: aPod(1), out: "Reboot"},
		{name: "where degraded nodes are not rebooted, a drain for that ends", state: "IDLE DRAIN", reason: reason, pod: aPod(1), undrain: true, message: back, out: "Returning"},
		{name: "and that of a process stays for a person", state: "IDLE DRAIN", reason: afterKill, pod: aPod(1, createdBefore(5*time.Minute)), out: "Reboot"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := worker.Next(worker.Worker{
				Now: noon, Asked: noon, Listed: noon, Known: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: "slurm", At: at},
				Pod: tt.pod, Slurm: "w-1", Host: worker.Host{
					Name: "node-1", Cordoned: node.AnswerOf(tt.cordoned), Maintenance: health.Maintenance{Type: tt.maintenance}, Reboot: tt.reboot,
				},
			})
			if got.Drain != tt.drain || got.Undrain != tt.undrain || got.Message != tt.message || got.OutOfService.Reason != tt.out || got.Revive || got.Delete {
				t.Errorf("drain %q, undrain %v, message %q, out of service %+v", got.Drain, got.Undrain, got.Message, got.OutOfService)
			}
		})
	}
}
