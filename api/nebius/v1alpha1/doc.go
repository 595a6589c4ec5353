// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of group slurm.nebius.ai that stand beside a SlurmCluster: NodeSet is a kind of worker,
// ActiveCheck a check that runs as a job. NodeConfigurator is what is done to Kubernetes nodes. JailedConfig is files in the jail.
// NodeSetPowerState shows which nodes of a NodeSet Slurm wants to run.
//
// The rules are those of package v1: both generations of the API side by side, one-line texts without line breaks, and
// large core types kept as written.
//
// +kubebuilder:object:generate=true
// +groupName=slurm.nebius.ai
package v1alpha1
