// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestAMismatchOfNamesAloneTakesNoWorker is about workers in the network of their Kubernetes nodes, which have dots in their names, while
// slurmd has registered by the short ones.
func TestAMismatchOfNamesAloneTakesNoWorker(t *testing.T) {
	elsewhere := func(p *workerpod.Pod) { p.RegisteredAs = "ip-10-0-0-1" }
	pods := []workerpod.Pod{
		aPod(0, known(node.No), elsewhere), aPod(1, known(node.No), elsewhere), aPod(2, known(node.No), elsewhere),
	}
	got := nodesetplan.Make(nodesetplan.Input{Now: noon, SnapshotTime: noon, NodeListTime: noon, Replicas: 3, Revision: "new", MaxUnavailable: 3, Pods: pods})
	if diff := cmp.Diff(nodesetplan.Plan{Desired: 3}, got); diff != "" {
		t.Error(diff)
	}

	for _, cause := range []workerpod.Cause{"", workerpod.ScaleIn, workerpod.Unregistered} {
		w := workerplan.Worker{
			Now:       noon,
			Pod:       aPod(0),
			Slurm:     "ip-10-0-0-1.ec2.internal",
			SlurmView: workerplan.SlurmView{Registered: node.No, SnapshotTime: noon, NodeListTime: noon, Absent: noon.Add(-time.Hour), RegisteredAs: "ip-10-0-0-1"},
			Wanted:    workerplan.Wanted{Protection: workerpod.UntilDrained},
		}
		w.Pod.Retired = cause
		action := workerplan.Next(w)
		if action.Deletion.Delete || action.StateChange.Drain != "" || action.Marks.Protected != node.Yes {
			t.Errorf("a worker with cause %q: %+v, want it kept and protected", cause, action)
		}
		if len(action.Shown.Troubles) != 1 || action.Shown.Troubles[0].Reason != slinkyv1beta1.ReasonNodeNameMismatch ||
			!strings.Contains(action.Shown.Troubles[0].Message, "as Slurm node ip-10-0-0-1, but the operator expects ip-10-0-0-1.ec2.internal") {
			t.Errorf("the troubles are %+v", action.Shown.Troubles)
		}
	}
}
