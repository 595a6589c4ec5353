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
		{"nobody in one that takes jobs", "IDLE", "", node.Nobody},
		{"nor by a reason that is left over", "IDLE", "was a bad disk", node.Nobody},
		{"we in one that we have drained", "IDLE DRAIN", ours, node.Operator},
		{"also when Slurm has given it up since", "DOWN DRAIN NOT_RESPONDING", ours + " : Not responding", node.Operator},
		{"we in one whose machine is replaced", "IDLE DRAIN", "[compute_maintenance] node replacement process: NebiusMaintenanceScheduled", node.Operator},
		{"also when Soperator has drained it for that", "IDLE DRAIN", "[node_problem] compute_maintenance: node replacement process", node.Operator},
		{"we in one whose pod uses nearly all of its ephemeral storage", "IDLE DRAIN", "[user_problem] pod_ephemeral_storage 90 % of its limit used", node.Operator},
		{"also when Soperator has drained it for that", "IDLE DRAIN", "[user_problem] pod_ephemeral_storage 87.31 ...", node.Operator},
		{"not in one that another check has drained", "IDLE DRAIN", "[user_problem] boot_disk_full: 95 %", node.SomebodyElse},
		{"not in one that a check has drained", "IDLE DRAIN", "[node_problem] gpu_health_check: XID 79", node.SomebodyElse},
		{"nor in one that Soperator wanted rebooted", "IDLE DRAIN", "[compute_maintenance] node reboot process", node.SomebodyElse},
		{"we in one that we want rebooted", "IDLE DRAIN", node.RebootReason, node.Operator},
		{"also after Kill task failed", "IDLE DRAIN", node.RebootAfterKillTask(), node.Operator},
		{"Slurm in one that offers too little", "IDLE DRAIN INVALID_REG", "Low RealMemory", node.Slurm},
		{"Slurm in one that it has given up", "DOWN NOT_RESPONDING", "Not responding", node.Slurm},
		{"also without a reason", "DOWN NOT_RESPONDING", "", node.Slurm},
		{"also after a reason that was left over", "DOWN", "was a bad disk : Not responding", node.Slurm},
		{"Slurm in one that did not come in time", "DOWN POWERED_DOWN", "ResumeTimeout reached", node.Slurm},
		{"an administrator who had set it down before that", "DOWN POWERED_DOWN", "bad disk : ResumeTimeout reached", node.SomebodyElse},
		{"an administrator in one that is drained", "IDLE DRAIN", "bad disk", node.SomebodyElse},
		{"also without a reason", "IDLE DRAIN", "", node.SomebodyElse},
		{"also when Slurm has given it up since", "DOWN DRAIN NOT_RESPONDING", "bad disk : Not responding", node.SomebodyElse},
		{"also in one that was set down", "DOWN", "bad disk", node.SomebodyElse},
		{"also without a reason, while it responds", "DOWN", "", node.SomebodyElse},
		{"what is not known is somebody else's", "", "", node.SomebodyElse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := node.HeldBy(node.Parse(strings.Fields(tt.state)), node.Reason{Text: tt.reason}); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}
