// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Machine is the machine behind a Kubernetes node. The zero value is a machine about which nothing is known.
type Machine struct {
	// Node is the name of the Kubernetes node, and UID the UID of the object.
	Node, UID string
	// System is the UUID from the firmware; empty if unknown. Some vendors give the same to all their machines.
	System string
}

// String returns the machine as the comment of a Slurm node has it; empty for the zero Machine.
func (m Machine) String() string {
	if m.UID == "" {
		return ""
	}
	return m.Node + "/" + m.UID + "/" + m.System
}

// ParseMachine reads a machine. What cannot be read is the zero Machine.
func ParseMachine(text string) Machine {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) != 3 || parts[1] == "" {
		return Machine{}
	}
	return Machine{Node: parts[0], UID: parts[1], System: parts[2]}
}

// Differs answers whether two machines are different ones.
//
//	same object                          no, unless the firmware has another UUID: the machine was exchanged below its Node
//	another name                         yes
//	the same name, another object        yes, unless the firmware has the same UUID: somebody has deleted the Node, and the kubelet made it anew
func (m Machine) Differs(other Machine) node.Answer {
	known := m.System != "" && other.System != ""
	switch {
	case m.UID == "" || other.UID == "":
		return node.Unknown
	case m.UID == other.UID:
		return node.AnswerOf(known && m.System != other.System)
	case m.Node != other.Node:
		return node.Yes
	}
	return node.AnswerOf(!known || m.System != other.System)
}

// MachineOf returns the machine behind a Kubernetes node.
func MachineOf(n *corev1.Node) Machine {
	return Machine{Node: n.Name, UID: string(n.UID), System: n.Status.NodeInfo.SystemUUID}
}
