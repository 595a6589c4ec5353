// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest is a client of slurmrestd, written by hand so that it can be small where it matters.
//
// A list of 10,000 nodes is 25 MB of JSON of which an operator needs a tenth. Answers are therefore decoded from the
// stream, without ever being held whole, into structs with just the fields that Coxswain reads; the rest is checked
// and skipped.
//
// Slurm's answers do not match their HTTP status, so every one of them is classified. A call returns nil, or an
// *Error with a Kind:
//
//   - Refused: Slurm understood and refused (errors[] of the answer, whatever the status).
//   - Absent: Slurm answered that a node to be changed, a job or a reservation does not exist (its codes 2018, 2017, and
//     2053 of a deletion). Nothing else is Absent. A 404 without a code is not: it means that slurmrestd does not know the
//     URL. Nor is a GET of an unknown node, which Slurm answers with 200 and an error of number 0.
//   - Unauthorized: the token is missing, expired or signed with another key.
//   - Unavailable: nobody answered, or somebody on the way could not reach slurmctld.
//   - Malformed: an answer that is not what slurmrestd sends.
//
// Lists have a third outcome, Unchanged, when they are asked for what changed since an earlier answer. A list without entries is
// believed only when the answer has the time when it was made (last_update > 0); Slurm sends an empty list with last_update 0 for
// "unchanged", and slurmctld always packs its clock into a true one. Measured with slurmrestd 24.11.5 and 26.05.5; testdata/ has
// answers of both.
package rest
