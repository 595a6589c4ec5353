// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestWhoKeepsJobsFromANode(t *testing.T) {
	const ours = "slurm-operator: Node was cordoned"
	const full = node.StorageReason + " 90 % of its limit used"
	plain := workerplan.Host{Name: "node-1", Cordoned: node.No}
	with := func(edit func(*workerplan.Host)) workerplan.Host {
		h := plain
		edit(&h)
		return h
	}
	announced := with(func(h *workerplan.Host) { h.Maintenance = health.Maintenance{Type: "Maintenance"} })
	for _, tt := range []struct {
		name, state, reason, by string
		pod                     workerpod.Pod
		host                    workerplan.Host
		storage                 health.Storage
		want, message           string
	}{
		{name: "nobody keeps jobs from a node that takes jobs", state: "MIXED", reason: "left over", pod: aPod(1), host: plain},
		{name: "nobody is said to keep jobs from a node whose state is not known", pod: aPod(1), host: plain},
		{name: "a worker's retirement keeps jobs from its node", state: "MIXED DRAIN", reason: drainReason, by: "slurm", pod: aPod(1, scaledIn), host: plain, want: "Retiring",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + drainReason + "; jobs run there to their end; the pod is deleted when nothing runs on it, see condition coxswain.dev/Retiring"},
		{name: "a registration that offers too little keeps jobs from the node", state: "IDLE DRAIN INVALID_REG", reason: "Low RealMemory", by: "slurm", pod: aPod(1), host: plain, want: "InvalidRegistration",
			message: "drained by slurm since 2026-11-20T11:00:00Z: Low RealMemory; it needs attention, see condition coxswain.dev/NeedsAttention"},
		{name: "the silence of slurmd keeps jobs from the node", state: "DOWN NOT_RESPONDING", reason: "Not responding", by: "slurm", pod: aPod(1), host: plain, want: "NotResponding",
			message: "down by slurm since 2026-11-20T11:00:00Z: Not responding; it takes jobs again when its slurmd registers (ReturnToService)"},
		{name: "a check keeps jobs from the node", state: "MIXED DRAIN", reason: "[node_problem] gpu_health_check: XID 79", by: "root", pod: aPod(1), host: plain, want: "FailedCheck",
			message: "drained by root since 2026-11-20T11:00:00Z: [node_problem] gpu_health_check: XID 79; jobs run there to their end; " +
				"the check undrains it when it passes; to undrain it by hand: scontrol update nodename=w-1 state=resume"},
		{name: "a check keeps jobs from the node, also while the machine is to be replaced", state: "IDLE DRAIN", reason: "[hardware_problem] nvme", by: "root", pod: aPod(1), host: announced, want: "FailedCheck",
			message: "drained by root since 2026-11-20T11:00:00Z: [hardware_problem] nvme; the check undrains it when it passes; to undrain it by hand: scontrol update nodename=w-1 state=resume"},
		{name: "a person keeps jobs from the node", state: "IDLE DRAIN", reason: "bad disk", by: "alice", pod: aPod(1), host: plain, want: "HeldBySomebody",
			message: "drained by alice since 2026-11-20T11:00:00Z: bad disk; the operator does not undo this; to return it to service: scontrol update nodename=w-1 state=resume"},
		{name: "a person who gives no reason keeps jobs from the node", state: "DOWN", pod: aPod(1), host: plain, want: "HeldBySomebody",
			message: "down since 2026-11-20T11:00:00Z: no reason given; the operator does not undo this; to return it to service: scontrol update nodename=w-1 state=resume"},
		{name: "maintenance keeps jobs from the node", state: "IDLE DRAIN", reason: node.MaintenanceReason, by: "slurm", pod: aPod(1), host: announced, want: "Maintenance",
			message: "drained by slurm since 2026-11-20T11:00:00Z: [compute_maintenance] node replacement process; it is undrained when no condition of Kubernetes node node-1 announces maintenance any more"},
		{name: "full ephemeral storage keeps jobs from the node", state: "IDLE DRAIN", reason: full, by: "slurm", pod: aPod(1), host: plain, storage: health.Storage{Full: node.Yes, Resume: 80}, want: "EphemeralStorage",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + full + "; it is undrained when the pod uses less than 80 % of its ephemeral storage"},
		{name: "full ephemeral storage keeps jobs from the node while the kubelet does not answer", state: "IDLE DRAIN", reason: full, by: "slurm", pod: aPod(1), host: plain, storage: health.Storage{Resume: 80}, want: "EphemeralStorage",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + full + "; it is undrained when the pod uses less than 80 % of its ephemeral storage"},
		{name: "ephemeral storage that nobody measures keeps jobs from the node", state: "IDLE DRAIN", reason: full, by: "slurm", pod: aPod(1), host: plain, want: "EphemeralStorage",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + full + "; nothing is known of the pod's ephemeral storage; scontrol update nodename=w-1 state=resume"},
		{name: "a pod that is not ready keeps jobs from the node when enough of its ephemeral storage is free", state: "IDLE DRAIN", reason: full, by: "slurm", pod: aPod(1, unready), host: plain, storage: health.Storage{Full: node.No, Resume: 80}, want: "Returning",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + full + "; it is used again when the pod is ready and slurmd answers"},
		{name: "a cordon of the Kubernetes node keeps jobs from the node", state: "IDLE DRAIN", reason: ours, by: "slurm", pod: aPod(1), host: with(func(h *workerplan.Host) { h.Cordoned = node.Yes }), want: "Cordoned",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + ours + "; it is undrained when neither Kubernetes node node-1 nor the pod is cordoned"},
		{name: "a cordon of the pod keeps jobs from the node", state: "IDLE DRAIN", reason: cordonReason, by: "slurm", pod: aPod(1, cordoned), host: plain, want: "Cordoned",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + cordonReason + "; it is undrained when neither Kubernetes node node-1 nor the pod is cordoned"},
		{name: "a Kubernetes node of which nothing is known keeps jobs from the node", state: "IDLE DRAIN", reason: ours, by: "slurm", pod: aPod(1), host: workerplan.Host{Name: "node-1"}, want: "KubernetesNodeUnknown",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + ours + "; it is undrained when Node node-1 exists and gives no reason for a drain"},
		{name: "a worker that is not ready yet keeps jobs from the node", state: "IDLE DRAIN", reason: ours, by: "slurm", pod: aPod(1, unready), host: plain, want: "Returning",
			message: "drained by slurm since 2026-11-20T11:00:00Z: " + ours + "; it is used again when the pod is ready and slurmd answers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := noon.Add(-time.Hour)
			w := workerplan.Worker{
				Now:       noon,
				SlurmView: workerplan.SlurmView{SnapshotTime: noon, NodeListTime: noon, Registered: node.Yes, State: node.Parse(strings.Fields(tt.state)), Reason: node.Reason{Text: tt.reason, SetBy: tt.by, At: at}},
				Pod:       tt.pod,
				Slurm:     "w-1",
				Host:      tt.host,
				Storage:   tt.storage,
			}
			want := workerplan.OutOfService{Reason: tt.want, Message: tt.message}
			if tt.want != "" {
				want.Since = at
			}
			if diff := cmp.Diff(want, workerplan.Next(w).Shown.OutOfService); diff != "" {
				t.Error(diff)
			}
			w.Registered = node.Unknown
			if got := workerplan.Next(w); got.Shown.OutOfService.Reason != "" || got.Shown.ConditionsKnown {
				t.Errorf("while Slurm is silent it is said: %+v", got)
			}
		})
	}
}
