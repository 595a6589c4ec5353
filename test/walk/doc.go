// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package walk goes the way from a machine to a Slurm cluster that a user can log in to: programs, a Kubernetes, images,
// the operator, a SlurmCluster. The demo walks it in front of a reader's eyes, the end-to-end tests walk it to test what
// comes after.
//
// Every step can be repeated: what is there already is used.
package walk
