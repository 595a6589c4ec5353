// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"slices"
	"syscall"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// job writes a job; rest are the fields that are the same for all.
func (w *shape) job(j *job, rest []byte) {
	w.object("", func() {
		end := j.end
		if end.IsZero() && !j.start.IsZero() {
			end = j.start.AddDate(1, 0, 0) // what Slurm writes for a job without limit
		}
		w.time("accrue_time", j.submitted)
		w.time("eligible_time", j.submitted)
		w.time("submit_time", j.submitted)
		w.time("start_time", j.start)
		w.time("end_time", end)
		w.number("time_limit", j.Limit > 0, j.Limit == 0, int64(j.Limit/time.Minute))
		w.int("job_id", j.id)
		w.texts("job_state", w.slurm.states(j))
		w.text("name", j.Name)
		w.text("nodes", hostlist.Compress(slices.Clone(j.nodes)))
		w.number("cpus", true, false, int64(max(1, j.CPUs)*j.Nodes))
		w.number("node_count", true, false, int64(j.Nodes))
		w.text("partition", j.Partition)
		w.int("restart_cnt", int64(j.restarts))
		w.text("user_name", w.slurm.nameOf(j.User))
		w.int("user_id", uidOf(j.User))
		w.text("comment", j.Comment)
		w.text("state_reason", j.reason)
		w.exitCode("exit_code", j.exitCode, j.signal)
		w.text("required_nodes", hostlist.Compress(slices.Clone(j.NodeList)))
		w.text("resv_name", j.Reservation)
		w.text("standard_output", j.Output)
		w.text("current_working_directory", j.Directory)
		w.text("cluster", w.slurm.options.Cluster)
		w.b = append(w.b, rest...)
	})
}

// nameOf is the name of a user as slurmrestd reports it.
func (s *Slurm) nameOf(user string) string {
	if s.options.Nameless {
		return ""
	}
	return user
}

// uidOf is the uid of a user, a different one for each name; an empty name is a user whom slurmctld could not look up.
func uidOf(user string) int64 {
	if user == "" {
		return 99
	}
	uid := int64(1000)
	for i := range len(user) {
		uid += int64(i+1) * int64(user[i])
	}
	return uid
}

// restOfJob writes, once for an answer, the fields in which the fake's jobs do not differ. They make up two thirds of an answer.
func (w *shape) restOfJob() []byte {
	rest := &shape{writer: &writer{compact: w.compact, depth: 3}, slurm: w.slurm, version: w.version}
	for _, key := range []string{
		"account", "admin_comment", "allocating_node", "array_task_string", "batch_features", "batch_host", "burst_buffer",
		"burst_buffer_state", "cluster_features", "command", "container", "container_id", "cpus_per_tres", "cron",
		"dependency", "excluded_nodes", "extra", "failed_node", "features", "federation_origin", "federation_siblings_active",
		"federation_siblings_viable", "group_name", "het_job_id_set", "licenses", "mail_user", "mcs_label", "memory_per_tres",
		"network", "prefer", "qos", "scheduled_nodes", "selinux_context", "state_description",
		"standard_error", "standard_input", "system_comment", "tres_bind", "tres_freq", "tres_per_job",
		"tres_per_node", "tres_per_socket", "tres_per_task", "tres_req_str", "tres_alloc_str", "wckey",
	} {
		rest.text(key, "")
	}
	rest.texts("flags", []string{"USING_DEFAULT_PARTITION"})
	for _, key := range []string{"gres_detail", "job_size_str", "mail_type", "shared"} {
		rest.texts(key, nil)
	}
	for _, key := range []string{"association_id", "core_spec", "nice", "sockets_per_board", "maximum_switch_wait_time"} {
		rest.int(key, 0)
	}
	if w.since("v0.0.42") {
		rest.int("required_switches", 0)
	}
	rest.int("group_id", 1000)
	rest.int("thread_spec", 32766)
	for _, key := range []string{"contiguous", "hold", "reboot"} {
		rest.bool(key, false)
	}
	rest.bool("batch_flag", true)
	rest.bool("requeue", true)
	for _, key := range []string{
		"array_task_id", "cores_per_socket", "cpu_frequency_minimum", "cpu_frequency_maximum", "cpu_frequency_governor",
		"memory_per_cpu", "sockets_per_node", "threads_per_core",
	} {
		rest.number(key, false, false, 0)
	}
	for _, key := range []string{
		"array_job_id", "array_max_tasks", "cpus_per_task", "deadline", "delay_boot", "het_job_id", "het_job_offset",
		"last_sched_evaluation", "max_cpus", "max_nodes", "tasks_per_tres", "tasks_per_node", "tasks_per_board", "tasks",
		"memory_per_node", "minimum_cpus_per_node", "minimum_tmp_disk_per_node", "preempt_time", "preemptable_time",
		"pre_sus_time", "priority", "resize_time", "suspend_time", "time_minimum",
	} {
		rest.number(key, true, false, 0)
	}
	rest.exitCode("derived_exit_code", 0, 0)
	return rest.b
}

// exitCode writes how a script ended.
func (w *shape) exitCode(key string, code int64, signal syscall.Signal) {
	status, name := "SUCCESS", map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP"}[signal]
	switch {
	case signal != 0:
		status = "SIGNALED"
	case code != 0:
		status = "ERROR"
	}
	w.object(key, func() {
		w.texts("status", []string{status})
		w.number("return_code", signal == 0, false, code)
		w.object("signal", func() {
			w.number("id", signal != 0, false, int64(signal))
			w.text("name", name)
		})
	})
}

// shown is a copy of a job with the reason why it waits, or ended like this.
func (s *Slurm) shown(j *job) job {
	out := *j
	switch {
	case j.state == "PENDING" && j.held:
		out.reason = "JobHeldAdmin"
	case j.state == "PENDING" && slices.ContainsFunc(j.NodeList, func(name string) bool { n := s.nodes[name]; return n == nil || !n.usable() }):
		out.reason = "ReqNodeNotAvail"
	case j.state == "PENDING":
		out.reason = "Resources"
	case j.reason == "":
		out.reason = "None"
	}
	return out
}
