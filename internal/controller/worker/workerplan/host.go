// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerplan

import (
	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Host is the Kubernetes node that a worker runs on, as far as it matters for the worker. The zero value is a node about which nothing is
// known.
type Host struct {
	// Name is its name; empty for a pod that has no node yet.
	Name string
	// Machine is the machine behind it; zero when there is no such node.
	Machine workerpod.Machine
	// Cordoned is whether it takes no more pods; Unknown when there is no such node.
	Cordoned node.Answer
	// CordonReason is the reason for Slurm's users, in the words of whoever cordoned it; empty for our own words.
	CordonReason string
	// Maintenance is what its conditions announce about the replacement of its machine.
	Maintenance health.Maintenance
	// Reboot is what they announce about its reboot.
	Reboot health.Reboot
	// Ready is whether it is ready by its conditions; Unknown when there is no such node.
	Ready node.Answer
	// Topology is the place of the Slurm node by its annotation; HasTopology reports whether it has one.
	Topology    string
	HasTopology bool
	// NVLinkInstanceGroup is its label with the machines whose GPUs reach each other by NVLink; empty for none.
	NVLinkInstanceGroup string
	// Features is its annotation with features of the Slurm node; empty for none.
	Features string
}
