// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/tres"
)

// gpus returns the number of GPUs of a node. They are trackable resources where AccountingStorageTRES names gres/gpu, and generic ones
// always.
func gpus(n *rest.Node) float64 {
	if tracked := tres.Amount(n.TRES, "gres/gpu"); tracked > 0 {
		return tracked
	}
	return tres.Generic(n.Gres, "gpu")
}
