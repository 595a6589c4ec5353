// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// bornProtected reports whether workers are made with the protect label: a job may start as soon as slurmd has registered. Without a
// RestApi nothing would ever take the label off.
func (r *reconciler) bornProtected(n *slinkyv1beta1.NodeSet) bool {
	_, ok := r.linkOf(n)
	return ok && workerpod.ProtectionOf(n) == workerpod.UntilDrained
}
