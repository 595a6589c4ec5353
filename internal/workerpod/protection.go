// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"

// Protection is when workers are kept from being evicted: docs/decisions/009.
type Protection int8

// The protections.
const (
	// Unprotected workers may be evicted at any time.
	Unprotected Protection = iota
	// WhileBusy keeps workers on which jobs run. One may have started since Slurm was asked last.
	WhileBusy
	// UntilDrained keeps workers from when they are made until Slurm reports that nothing runs there and nothing will start.
	UntilDrained
)

// ProtectionOf returns when a NodeSet wants its workers kept from being evicted.
func ProtectionOf(n *slinkyv1beta1.NodeSet) Protection {
	switch {
	case !n.DisruptionProtection():
		return Unprotected
	case n.Annotations[slinkyv1beta1.AnnotationEvictIdle] == "true":
		return WhileBusy
	}
	return UntilDrained
}
