// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Place is where a worker belongs. It identifies the worker in its NodeSet.
type Place struct {
	// Ordinal is its number in scaling mode StatefulSet.
	Ordinal int
	// Node is the Kubernetes node that it must run on; empty for any.
	Node string
	// Hostname is its host name in scaling mode DaemonSet; empty in the other, where it follows from the ordinal.
	Hostname string
}

// PodName returns the name of the worker's pod.
func (p Place) PodName(n *slinkyv1beta1.NodeSet) string {
	if n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet {
		return n.DaemonPodName(p.Hostname)
	}
	return n.PodName(p.Ordinal)
}
