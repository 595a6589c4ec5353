// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/worker"
)

// Machine returns the machine behind a Kubernetes node.
func Machine(n *corev1.Node) worker.Machine {
	return worker.Machine{Node: n.Name, UID: string(n.UID), System: n.Status.NodeInfo.SystemUUID}
}
