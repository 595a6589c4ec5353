// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds SlurmCluster of group slurm.nebius.ai: one object that describes a whole Slurm cluster.
//
// A SlurmCluster is a composite. It is compiled to component objects of group slinky.slurm.net (Controller,
// Accounting, RestApi, LoginSet, NodeSet), and the fields here define them. Two generations of the API
// live side by side: a field that only the older one had is marked "Deprecated" with its replacement, and keeps working.
//
// Text that ends up on one line of a configuration file may not hold a line break or NUL; the CRD refuses it. Large
// core types (affinity, containers, volume sources) are kept as written, see package embedded.
//
// +kubebuilder:object:generate=true
// +groupName=slurm.nebius.ai
package v1
