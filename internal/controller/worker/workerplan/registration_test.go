// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestAWorkerSaysThatItsRecordIsNotItsOwn(t *testing.T) {
	tests := []struct {
		name, state, comment, reason string
		want, message                string
	}{
		{"a record that fits is no trouble", "IDLE", `{"podName":"w-0","registration":"mine"}`, "", "", ""},
		{"a record of nobody knows what is no trouble", "IDLE", `{"podName":"w-0"}`, "", "", ""},
		{"a record of another registration is told", "IDLE", `{"podName":"w-0","registration":"other"}`, "", slinkyv1beta1.ReasonRecordOutdated, "other values than Slurm's record of node w-0 has"},
		{"a record that wants more than slurmd offers is told", "IDLE DRAIN INVALID_REG", `{"podName":"w-0","registration":"mine"}`, "Low RealMemory (reported:24105 < 90.00% of configured:100000)",
			slinkyv1beta1.ReasonInvalidRegistration, "Low RealMemory (reported:24105 < 90.00% of configured:100000)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Record: workerplan.Record{Comment: tt.comment}, Reason: node.Reason{Text: tt.reason, SetBy: "slurm"}},
				Pod:       aPod(0),
				Slurm:     "w-0",
				Host:      workerplan.Host{Cordoned: node.No},
				Wanted:    workerplan.Wanted{Comment: node.Comment{PodName: "w-0", Registration: "mine"}},
			}
			action := workerplan.Next(w)
			if tt.want == "" && len(action.Shown.Troubles) > 0 || tt.want != "" && (len(action.Shown.Troubles) != 1 || action.Shown.Troubles[0].Reason != tt.want) {
				t.Fatalf("the troubles are %+v, want %q", action.Shown.Troubles, tt.want)
			}
			if tt.want != "" && !strings.Contains(action.Shown.Troubles[0].Message, tt.message) {
				t.Errorf("%q is not in %q", tt.message, action.Shown.Troubles[0].Message)
			}
			if was, _ := node.ParseComment(tt.comment); was.Registration == "other" && action.Record.Comment != nil {
				t.Errorf("the record is said to be that of this pod: %s", *action.Record.Comment)
			}
		})
	}
}
