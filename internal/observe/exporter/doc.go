// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exporter shows Prometheus what a Slurm cluster is doing: its nodes, its jobs and its slurmctld, under the names that
// dashboards of Soperator use.
//
// An Exporter collects in intervals. Each collector turns what is known into the text of its metrics once, and scrapes get that text.
// So a scrape costs neither Slurm nor the exporter anything, and has the age of the text.
//
// A History counts what Slurm does not: how often nodes failed, how long they were away, and how many GPU seconds they had. It starts
// anew with the process.
package exporter
