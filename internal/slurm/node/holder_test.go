// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestWhoHasASayInANode(t *testing.T) {
	const ours = "slurm-operator: Pod was cordoned"
	for _, tt := range []struct {
		name, state, reason string
		want                node.Holder
	}{
		{"nobody holds a node that takes jobs", "IDLE", "", node.Nobody},
		{"nobody holds a node by a reason that is left over", "IDLE", "was a bad disk", node.Nobody},
		{"we hold a node that we have drained", "IDLE DRAIN", ours, node.Operator},
		{"we hold a node that we have drained and that Slurm has given up since", "DOWN DRAIN NOT_RESPONDING", ours + " : Not responding", node.Operator},
		{"we hold a node whose machine is replaced", "IDLE DRAIN", "[compute_maintenance] node replacement process: NebiusMaintenanceScheduled", node.Operator},
		{"we hold a node that Soperator has drained for the replacement of its machine", "IDLE DRAIN", "[node_problem] compute_maintenance: node replacement process", node.Operator},
		{"we hold a node whose pod uses nearly all of its ephemeral storage", "IDLE DRAIN", "[user_problem] pod_ephemeral_storage 90 % of its limit used", node.Operator},
		{"we hold a node that Soperator has drained for its ephemeral storage", "IDLE DRAIN", "[user_problem] pod_ephemeral_storage 87.31 ...", node.Operator},
		{"we do not hold a node that a check of a disk has drained", "IDLE DRAIN", "[user_problem] boot_disk_full: 95 %", node.SomebodyElse},
		{"we do not hold a node that a check of a GPU has drained", "IDLE DRAIN", "[node_problem] gpu_health_check: XID 79", node.SomebodyElse},
		{"we do not hold a node that Soperator wanted rebooted", "IDLE DRAIN", "[compute_maintenance] node reboot process", node.SomebodyElse},
		{"we hold a node that we want rebooted", "IDLE DRAIN", node.RebootReason, node.Operator},
		{"we hold a node that we want rebooted after Kill task failed", "IDLE DRAIN", node.RebootAfterKillTask(), node.Operator},
		{"Slurm holds a node that offers too little", "IDLE DRAIN INVALID_REG", "Low RealMemory", node.Slurm},
		{"Slurm holds a node that it has given up", "DOWN NOT_RESPONDING", "Not responding", node.Slurm},
		{"Slurm holds a node that it has given up without a reason", "DOWN NOT_RESPONDING", "", node.Slurm},
		{"Slurm holds a node that it has given up after a reason that was left over", "DOWN", "was a bad disk : Not responding", node.Slurm},
		{"Slurm holds a node that did not come in time", "DOWN POWERED_DOWN", "ResumeTimeout reached", node.Slurm},
		{"an administrator who had set it down before holds a node that did not come in time", "DOWN POWERED_DOWN", "bad disk : ResumeTimeout reached", node.SomebodyElse},
		{"an administrator holds a node that is drained", "IDLE DRAIN", "bad disk", node.SomebodyElse},
		{"an administrator holds a node that is drained without a reason", "IDLE DRAIN", "", node.SomebodyElse},
		{"an administrator holds a node that is drained and that Slurm has given up since", "DOWN DRAIN NOT_RESPONDING", "bad disk : Not responding", node.SomebodyElse},
		{"an administrator holds a node that was set down", "DOWN", "bad disk", node.SomebodyElse},
		{"an administrator holds a node that was set down without a reason, while it responds", "DOWN", "", node.SomebodyElse},
		{"what is not known is somebody else's", "", "", node.SomebodyElse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := node.HeldBy(node.Parse(strings.Fields(tt.state)), node.Reason{Text: tt.reason}); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}
