// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostlist reads and writes Slurm's host list expressions, the notation in which Slurm names many nodes at
// once: w[1-3,07-09],gpu-a,rack[1-2]n[01-10].
//
// Two rules of Slurm shape it (slurm.conf(5), NodeName; tried out with `scontrol show hostnames`):
//
//   - several brackets may stand in one name. Before Slurm 24.11 one of them had to be at its end (unit[0-31]rack was
//     invalid): Parse accepts both, Compress writes what all versions accept;
//   - the first number of a range gives the width: [07-10] is 07, 08, 09, 10 and [7-10] is 7, 8, 9, 10.
//
// An expression can stand for far more names than memory holds (a[0-999999999]). Parse therefore keeps it as ranges;
// names come out one by one from Expr.All, or as a slice from Expand, which takes a limit.
package hostlist
