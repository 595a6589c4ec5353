// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conf reads, merges and writes Slurm's configuration files (slurm.conf, slurmdbd.conf, cgroup.conf, gres.conf
// and others of the form Key=Value) as documents.
//
// A renderer builds a Document of its own values. What users write (extraConf, customSlurmConfig) is parsed into another
// one and merged into it: a scalar replaces, a set unites, a line such as PartitionName is added. Keys that the
// operator owns are refused, with the line of the user's text in the Problem. Keys that this package does not know pass
// through, since Slurm grows new ones every half year.
//
// What Slurm's parser really does (slurm.conf(5), and tried out with a slurmctld; see TestSlurmctldReadsWhatIsWritten)
// decides about quoting:
//
//   - '#' starts a comment wherever it stands, inside quotes too, unless a backslash precedes it;
//   - a backslash at the end of a line joins the next line to it, any other makes the next character literal;
//   - a value is either everything between two double quotes or runs up to the next blank; there is no way to write a
//     quote together with a blank;
//   - one line holds one key. Only a few keys (PartitionName, NodeName, …) take further Key=Value options behind theirs.
//
// Document.Bytes writes nothing that would be read back as something else. A value that cannot be written safely is an
// error, so that nothing user-written can leave its line.
package conf
