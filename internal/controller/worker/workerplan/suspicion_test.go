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
)

// TestACheckSuspectsTheMachineOfAWorker goes through docs/contributors/predecessors/soperator-health.md#suspected-hardware.
func TestACheckSuspectsTheMachineOfAWorker(t *testing.T) {
	const reason = "[hardware_problem] gpu_fallen_off: Xid 79"
	ours := node.ReplacementAfterCheck(reason)
	suspected := health.Maintenance{Type: health.HardwareIssuesSuspected, Reason: health.ReasonCheckFailed, Suspected: true}
	byCloud := health.Maintenance{Type: health.HardwareIssuesSuspected, Reason: "Cloud"}
	for _, tt := range []struct {
		name        string
		maintenance health.Maintenance
		state       string
		reason      string
		drain       string
		undrain     bool
		out         string
	}{
		{"the drain of a check is the check's as long as the machine is not suspected", health.Maintenance{}, "IDLE DRAIN", reason, "", false, "FailedCheck"},
		{"the drain of a check becomes ours when the machine is suspected", suspected, "IDLE DRAIN", reason, ours, false, "FailedCheck"},
		{"the drain of a check becomes ours on a node that is DOWN, too", suspected, "DOWN DRAIN NOT_RESPONDING", reason, ours, false, "FailedCheck"},
		{"the drain of a check becomes ours once", suspected, "IDLE DRAIN", ours, "", false, "Maintenance"},
		{"the drain of a check stays where a cloud suspects the machine, which may mean something else", byCloud, "IDLE DRAIN", reason, "", false, "FailedCheck"},
		{"the drain of another check stays", suspected, "IDLE DRAIN", "[node_problem] disk: full", "", false, "FailedCheck"},
		{"the drain of a person stays", suspected, "IDLE DRAIN", "gpu looks odd", "", false, "HeldBySomebody"},
		{"a worker with jobs drains when the machine is suspected", suspected, "ALLOCATED", "", node.MaintenanceReason + ": HardwareIssuesSuspected", false, ""},
		{"a worker comes back on another machine", health.Maintenance{}, "IDLE DRAIN", ours, "", true, "Returning"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := workerplan.Next(workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: "slurm", At: noon.Add(-time.Hour)}},
				Pod:       aPod(1),
				Slurm:     "w-1",
				Host:      workerplan.Host{Name: "node-1", Cordoned: node.No, Maintenance: tt.maintenance},
			})
			if got.StateChange.Drain != tt.drain || got.StateChange.Undrain != tt.undrain || got.Shown.OutOfService.Reason != tt.out || got.Deletion.Delete {
				t.Errorf("drain %q, undrain %v, out of service %+v", got.StateChange.Drain, got.StateChange.Undrain, got.Shown.OutOfService)
			}
		})
	}
}
