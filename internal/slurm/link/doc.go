// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package link keeps the live link to Slurm clusters, one Link for each.
//
// A Link asks slurmrestd every second what changed since its last answer, keeps the nodes in an immutable Snapshot
// and sends subscribers the names of nodes that changed. Its requests take at most a twentieth of slurmrestd's time, and
// more for a while after a write, and when somebody begins to wait: then it asks sooner. Every limit has a file of its own, …_limit.go or …_budget.go.
//
// A Link has six parts that run on their own: node poller, job follower, followed jobs, leaving partitions, slurmctld poller and writer.
//
// Every Snapshot has a Trust. Decisions that destroy something need Fresh, and only a Fresh snapshot can answer that Slurm does not
// have a node, or what state it is in; all others answer Unknown.
//
// Writes of the same change to several nodes within 50 ms leave as one call with a hostlist, and every caller learns what became of its
// own nodes.
//
// The Registry maps a Controller's namespace and name to its Link and follows changes of endpoint and key; the snapshot
// survives them. Links start and end with Set, Delete and Close, which wait for their goroutines. Nothing is kept when
// the process ends: after a restart the first answer makes the first snapshot.
package link
