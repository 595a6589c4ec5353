// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node interprets the states of a Slurm node, who drained it and why, and what its comment records about the pod behind it.
//
// The REST API gives a state as a list of words: one base (IDLE, ALLOCATED, …) and any number of flags (DRAIN,
// NOT_RESPONDING, …), see sinfo(1), NODE STATE CODES. Questions about it are answered by Yes, No or Unknown: an empty list,
// two bases, a base that a newer Slurm has invented, are reasons not to know. A flag that a newer Slurm has invented is a reason not to know
// whether jobs are there. Unknown is the zero value, and nothing may be deleted, drained or undrained because of it.
package node
