// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestForWhichChecksAWorkerWaits(t *testing.T) {
	here := workerpod.Machine{Node: "node-1", UID: "u", System: "s"}
	passed := func(m workerpod.Machine) string { return slinkyv1beta1.CheckPassed + m.String() }
	for _, tt := range []struct {
		name     string
		needs    string
		required []string
		said     string
		machine  workerpod.Machine
		want     string
	}{
		{name: "a worker from before the check was required needs none", required: []string{"disk"}, machine: here},
		{name: "a worker waits for a check that nobody has run", needs: "disk", required: []string{"disk"}, machine: here, want: "disk: has not run"},
		{name: "a worker waits for a check that failed, and says how", needs: "disk,gpu", required: []string{"disk"}, said: "Job x failed: full", machine: here, want: "disk: Job x failed: full"},
		{name: "a check that passed on this machine is not waited for", needs: "disk", required: []string{"disk"}, said: passed(here), machine: here},
		{name: "a check that passed before the Node was made anew is not waited for", needs: "disk", required: []string{"disk"}, said: passed(workerpod.Machine{Node: "node-1", UID: "v", System: "s"}), machine: here},
		{name: "a check that passed on another machine is waited for", needs: "disk", required: []string{"disk"}, said: passed(workerpod.Machine{Node: "node-1", UID: "u", System: "other"}), machine: here, want: "disk: has passed on another machine"},
		{name: "a check is waited for while nothing is known of the machine", needs: "disk", required: []string{"disk"}, said: passed(here), want: "disk: has passed on another machine"},
		{name: "a note that cannot be read is none", needs: "disk", required: []string{"disk"}, said: "Passed ", machine: here, want: "disk: has passed on another machine"},
		{name: "a check that is required no more is not waited for", needs: "disk,gpu", required: []string{"other"}, machine: here},
	} {
		t.Run(tt.name, func(t *testing.T) {
			annotations := map[string]string{slinkyv1beta1.AnnotationRequiredChecks: tt.needs, slinkyv1beta1.AnnotationCheckPrefix + "disk": tt.said}
			if got := workerpod.ChecksOf(annotations, tt.required, tt.machine).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAWorkerThatWaitsForChecks goes through docs/decisions/051: the drain is one of ours, and ends when the last cause is gone.
func TestAWorkerThatWaitsForChecks(t *testing.T) {
	const (
		cordon      = "slurm-operator: Node was cordoned"
		maintenance = node.MaintenanceReason + ": NebiusMaintenanceScheduled"
		waits       = "waits for checks disk"
	)
	disk := workerpod.Checks{{Name: "disk", State: "has not run"}}
	announced := health.Maintenance{Type: "NebiusMaintenanceScheduled", Message: "on Friday"}
	for _, tt := range []struct {
		name        string
		checks      workerpod.Checks
		maintenance health.Maintenance
		cordoned    node.Answer
		state       string
		reason      string
		pod         workerpod.Pod
		drain       string
		undrain     bool
		message     string
		out         string
	}{
		{name: "a node drains while its worker waits for checks", checks: disk, state: "IDLE", pod: aPod(1), drain: node.ChecksReason, message: waits},
		{name: "a node that drains for checks keeps the jobs that run there", checks: disk, state: "MIXED", pod: aPod(1), drain: node.ChecksReason, message: waits},
		{name: "a node drains for checks once", checks: disk, state: "IDLE DRAIN", reason: node.ChecksReason, pod: aPod(1), message: waits, out: slinkyv1beta1.ReasonWaitsForChecks},
		{name: "a record that is DOWN is drained before its slurmd registers", checks: disk, state: "DOWN NOT_RESPONDING", reason: "Not responding", pod: aPod(1, scheduled), drain: node.ChecksReason, message: waits, out: slinkyv1beta1.ReasonNotResponding},
		{name: "a record that we have set DOWN is drained too, since another slurmd would revive it", checks: disk, state: "DOWN", reason: "slurm-operator: Pod is terminating", pod: aPod(1), drain: node.ChecksReason, message: waits, out: slinkyv1beta1.ReasonWaitsForChecks},
		{name: "a drain of a person stays", checks: disk, state: "IDLE DRAIN", reason: "bad disk", pod: aPod(1), message: waits, out: slinkyv1beta1.ReasonHeldBySomebody},
		{name: "a drain of a person stays when the checks have passed", state: "IDLE DRAIN", reason: "bad disk", pod: aPod(1), out: slinkyv1beta1.ReasonHeldBySomebody},
		{name: "maintenance goes before checks", checks: disk, maintenance: announced, state: "IDLE DRAIN", reason: node.ChecksReason, pod: aPod(1), drain: maintenance, message: "Kubernetes node node-1 has condition NebiusMaintenanceScheduled: on Friday", out: slinkyv1beta1.ReasonMaintenance},
		{name: "the drain for checks follows on maintenance", checks: disk, state: "IDLE DRAIN", reason: maintenance, pod: aPod(1), drain: node.ChecksReason, message: waits, out: slinkyv1beta1.ReasonWaitsForChecks},
		{name: "the end of a cordon does not open the node", checks: disk, state: "IDLE DRAIN", reason: cordon, pod: aPod(1), message: waits, out: slinkyv1beta1.ReasonWaitsForChecks},
		{name: "a cordon keeps the node when the checks have passed", cordoned: node.Yes, state: "IDLE DRAIN", reason: node.ChecksReason, pod: aPod(1), message: "Kubernetes node node-1 is cordoned", out: slinkyv1beta1.ReasonCordoned},
		{name: "the node takes jobs when the checks have passed", state: "IDLE DRAIN", reason: node.ChecksReason, pod: aPod(1), undrain: true, message: "nobody wants the node drained any more", out: slinkyv1beta1.ReasonReturning},
		{name: "a retirement takes the drain for checks over", checks: disk, state: "MIXED DRAIN", reason: node.ChecksReason, pod: aPod(1, scaledIn), drain: drainReason, message: "waiting for jobs to end", out: slinkyv1beta1.ReasonRetiring},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cordoned := tt.cordoned
			if cordoned == node.Unknown {
				cordoned = node.No
			}
			got := workerplan.Next(workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: "slurm", At: noon}, Record: workerplan.Record{Started: noon.Add(1)}},
				Pod:       tt.pod,
				Checks:    tt.checks,
				Host:      workerplan.Host{Name: "node-1", Cordoned: cordoned, Maintenance: tt.maintenance},
			})
			if got.StateChange.Drain != tt.drain || got.StateChange.Undrain != tt.undrain || got.StateChange.Revive || got.Shown.Message != tt.message || got.Shown.OutOfService.Reason != tt.out {
				t.Errorf("drain %q, undrain %v, revive %v, message %q, out of service %q", got.StateChange.Drain, got.StateChange.Undrain, got.StateChange.Revive, got.Shown.Message, got.Shown.OutOfService.Reason)
			}
		})
	}
	t.Run("a worker whose checks have not passed may go when it is retired and free", func(t *testing.T) {
		got := workerplan.Next(workerplan.Worker{
			Now:       noon,
			SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: node.ChecksReason, SetBy: "slurm", At: noon}, JobsKnown: node.Yes},
			Pod:       aPod(1, scaledIn),
			Checks:    disk,
			Host:      anUncordonedNode,
		})
		if !got.Deletion.Delete {
			t.Errorf("it is not deleted: %s", got.Shown.Message)
		}
	})
	t.Run("the mark of a cordon that is over does not say that it is about to be used", func(t *testing.T) {
		got := workerplan.Next(workerplan.Worker{
			Now:        noon,
			SlurmView:  workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: cordon, SetBy: "slurm", At: noon}, JobsKnown: node.Yes},
			Pod:        aPod(1),
			Checks:     disk,
			NodeMarked: true,
			Host:       anUncordonedNode,
			Wanted:     workerplan.Wanted{Protection: workerpod.UntilDrained},
		})
		if got.Announce || got.Marks.Protected != node.No {
			t.Errorf("announce %v, protected %v", got.Announce, got.Marks.Protected)
		}
	})
}
