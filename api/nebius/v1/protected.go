// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

const (
	// LabelProtected with the value "true" on a Secret has the webhook protect it.
	LabelProtected = "slurm.nebius.ai/webhook"
	// AnnotationProtectedFor on a protected Secret names the SlurmCluster for whose lifetime it is kept.
	AnnotationProtectedFor = "slurm.nebius.ai/cluster"
)
