// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestAWorkerThatIsRegisteredUnderAnotherNameIsKept(t *testing.T) {
	for _, protection := range []workerpod.Protection{workerpod.WhileBusy, workerpod.UntilDrained} {
		got := workerplan.Next(workerplan.Worker{
			Now:       noon,
			SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, RegisteredAs: "ip-10-0-0-1", Registered: node.No, SlurmStateLost: node.No},
			Pod:       aPod(1, scaledIn),
			Slurm:     "w-1",
			Wanted:    workerplan.Wanted{Protection: protection},
		})
		if got.Deletion.Delete || got.Marks.Protected != node.Yes || !strings.Contains(got.Shown.Message, "as node ip-10-0-0-1 rather than w-1") ||
			len(got.Shown.Troubles) != 1 || got.Shown.Troubles[0].Reason != slinkyv1beta1.ReasonNodeNameMismatch {
			t.Errorf("%+v", got)
		}
	}
}

func TestAWorkerThatSlurmMayHaveForgottenKeepsTheProtectionThatItHas(t *testing.T) {
	got := workerplan.Next(workerplan.Worker{Now: noon, SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.No, SlurmStateLost: node.Yes}, Pod: aPod(1), Wanted: workerplan.Wanted{Protection: workerpod.WhileBusy}})
	if got.Marks.Protected != node.Unknown || got.Deletion.Delete {
		t.Errorf("%+v", got)
	}
}
