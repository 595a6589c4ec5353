// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"strconv"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// controller writes what slurmctld reports about itself.
func (t *text) controller(d rest.Diag) {
	t.start("slurm_controller_rpc_calls_total", counter, "Calls to slurmctld, by their kind.")
	t.calls(d.ByMessage, count, byMessage)
	t.start("slurm_controller_rpc_duration_seconds_total", counter, "How long slurmctld has worked for calls, by their kind.")
	t.calls(d.ByMessage, took, byMessage)
	t.start("slurm_controller_rpc_user_calls_total", counter, "Calls to slurmctld, by who made them.")
	t.calls(d.ByUser, count, byUser)
	t.start("slurm_controller_rpc_user_duration_seconds_total", counter, "How long slurmctld has worked for calls, by who made them.")
	t.calls(d.ByUser, took, byUser)
	t.start("slurm_controller_server_thread_count", gauge, "Threads of slurmctld that answer calls.")
	t.add(float64(d.ServerThreads))
}

func (t *text) calls(list []rest.Calls, value func(rest.Calls) float64, labels func(rest.Calls) []label) {
	for _, c := range list {
		t.add(value(c), labels(c)...)
	}
}

func count(c rest.Calls) float64 { return float64(c.Count) }
func took(c rest.Calls) float64  { return c.Took.Seconds() }

func byMessage(c rest.Calls) []label { return []label{{"message_type", c.Name}} }

func byUser(c rest.Calls) []label {
	return []label{{"user", c.Name}, {"user_id", strconv.FormatInt(c.ID, 10)}}
}
