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

// TestAWorkerWhoseMachineWasSuspectedComesBackOnAnother goes through contract soperator.md §6.2, [hardware_problem] of version 5.0.
func TestAWorkerWhoseMachineWasSuspectedComesBackOnAnother(t *testing.T) {
	const reason = "[hardware_problem] gpu_fallen_off: Xid 79"
	at := noon.Add(-time.Hour)
	anew, young := noon.Add(-10*time.Minute), createdBefore(5*time.Minute)
	for _, tt := range []struct {
		name        string
		replaced    time.Time
		maintenance string
		state       string
		reason      string
		pod         nodeset.Pod
		undrain     bool
		out         string
	}{
		{"on a younger machine it is undrained", anew, "", "IDLE DRAIN", reason, aPod(1, young), true, "Returning"},
		{"not where Nodes are not replaced", time.Time{}, "", "IDLE DRAIN", reason, aPod(1, young), false, "FailedCheck"},
		{"not on a machine that is older than the drain", at.Add(-time.Hour), "", "IDLE DRAIN", reason, aPod(1, young), false, "FailedCheck"},
		{"not a pod that is older than the drain", anew, "", "IDLE DRAIN", reason, aPod(1, createdBefore(2*time.Hour)), false, "FailedCheck"},
		{"not before the pod is ready", anew, "", "IDLE DRAIN", reason, aPod(1, young, unready), false, "Returning"},
		{"not while slurmd does not answer", anew, "", "IDLE DRAIN NOT_RESPONDING", reason, aPod(1, young), false, "Returning"},
		{"not while that machine is to be replaced as well", anew, "M", "IDLE DRAIN", reason, aPod(1, young), false, "Maintenance"},
		{"not the drain of another check", anew, "", "IDLE DRAIN", "[node_problem] disk: full", aPod(1, young), false, "FailedCheck"},
		{"not the drain of a person", anew, "", "IDLE DRAIN", "gpu looks odd", aPod(1, young), false, "HeldBySomebody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := worker.Next(worker.Worker{
				Now: noon, Asked: noon, Listed: noon, Known: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: "slurm", At: at},
				Pod: tt.pod, Slurm: "w-1", Host: worker.Host{Name: "node-1", Cordoned: node.No, Replaced: tt.replaced, Maintenance: health.Maintenance{Type: tt.maintenance}},
			})
			if got.Undrain != tt.undrain || got.OutOfService.Reason != tt.out || got.Drain != "" || got.Delete {
				t.Errorf("undrain %v, drain %q, out of service %+v", got.Undrain, got.Drain, got.OutOfService)
			}
			if want := map[bool]string{true: reason}[tt.undrain]; got.Of != want {
				t.Errorf("it ends the drain of %q, want %q", got.Of, want)
			}
		})
	}
}
