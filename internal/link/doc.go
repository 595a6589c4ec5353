// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package link keeps the live link to Slurm clusters, one Link for each.
//
// A Link asks slurmrestd every two seconds what changed since its last answer, keeps the nodes in an immutable Snapshot
// and tells subscribers the names of nodes that changed. It never takes more than a twentieth of slurmrestd's time: an
// answer that took t is followed by at least 20 t of silence. After a write it asks sooner.
//
// Every Snapshot has a Trust. Decisions that destroy something need Fresh, and only a Fresh snapshot says that Slurm does
// not have a node, or what state it is in; all others answer Unknown.
//
// Writes that say the same about several nodes within 50 ms leave as one call with a hostlist, and every caller learns
// what became of its own nodes.
//
// The Registry maps a Controller's namespace and name to its Link and follows changes of endpoint and key; the snapshot
// survives them. Links start and end with Set, Delete and Close, which wait for their goroutines. Nothing is kept when
// the process ends: after a restart the first answer makes the first snapshot.
package link
