// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A shape writes answers in one version of the API.
type shape struct {
	*writer
	slurm   *Slurm
	version string // "v0.0.45"
}

// since reports whether w's version is at least the given one.
func (w *shape) since(version string) bool { return w.version >= version }

func (w *shape) meta() {
	release := w.slurm.options.Release
	parts := strings.Split(release, ".")
	w.object("meta", func() {
		w.object("plugin", func() {
			w.text("type", "openapi/slurmctld")
			w.text("name", "Slurm OpenAPI slurmctld")
			w.text("data_parser", "data_parser/"+w.version)
			w.text("accounting_storage", "")
		})
		w.object("client", func() {
			w.text("source", "127.0.0.1:6820(fd:9)")
			w.text("user", "root")
			w.text("group", "root")
		})
		w.texts("command", nil)
		w.object("slurm", func() {
			w.object("version", func() {
				w.text("major", parts[0])
				w.text("micro", parts[2])
				w.text("minor", parts[1])
			})
			w.text("release", release)
			w.text("cluster", w.slurm.options.Cluster)
		})
	})
}

func (w *shape) errors(list ...Error) {
	w.list("errors", func() {
		for _, e := range list {
			w.object("", func() {
				w.text("description", e.Description)
				w.int("error_number", int64(e.Number))
				w.text("error", e.Text)
				w.text("source", "fake")
			})
		}
	})
}

func (w *shape) warnings(list ...string) {
	w.list("warnings", func() {
		for _, text := range list {
			w.object("", func() {
				w.text("description", text)
				w.text("source", "fake")
			})
		}
	})
}

// A shownNode is a node as it was at one time, which is written when the lock is free again.
type shownNode struct {
	node
	state       []string
	reservation string
	used        int // CPUs
}

// show records what is shown of a node.
func (s *Slurm) show(n *node) shownNode {
	out := shownNode{node: *n, state: s.state(n), used: n.allocated()}
	if r, _ := s.reserved(n); r != nil {
		out.reservation = r.Name
	}
	if n.reason == "" && s.old() {
		out.reasonUser = "root" // 24.11 prints user 0
	}
	return out
}

// nodesLater answers with nodes.
func (w *shape) nodesLater(nodes []shownNode, now time.Time) reply {
	return reply{status: http.StatusOK, late: func() []byte {
		w.object("", func() {
			w.list("nodes", func() {
				for i := range nodes {
					w.node(&nodes[i])
				}
			})
			w.time("last_update", now)
			w.meta()
			w.errors()
			w.warnings()
		})
		return w.b
	}}
}

// node writes every field that slurmrestd writes, in its order; sizes are real too.
func (w *shape) node(n *shownNode) {
	w.object("", func() {
		w.text("architecture", "x86_64")
		w.text("burstbuffer_network_address", "")
		w.int("boards", 1)
		w.time("boot_time", n.registered)
		if w.since("v0.0.43") {
			w.time("tls_cert_last_renewal", time.Time{})
			w.texts("cert_flags", nil)
		}
		w.text("cluster_name", "")
		w.int("cores", 1)
		w.int("specialized_cores", int64(n.CoreSpecCount))
		w.int("cpu_binding", 0)
		w.int("cpu_load", 0)
		w.number("free_mem", true, false, n.RealMemory)
		w.int("cpus", int64(n.CPUs))
		w.int("effective_cpus", int64(n.CPUs-n.CoreSpecCount))
		w.text("specialized_cpus", "")
		w.object("energy", func() {
			w.int("average_watts", 0)
			w.int("base_consumed_energy", 0)
			w.int("consumed_energy", 0)
			w.number("current_watts", true, false, 0)
			w.int("previous_consumed_energy", 0)
			w.int("last_collected", 0)
		})
		if !w.since("v0.0.45") {
			w.object("external_sensors", func() {})
		}
		w.text("extra", n.Extra)
		if !w.since("v0.0.45") {
			w.object("power", func() {})
		}
		w.texts("features", n.Features)
		w.texts("active_features", n.active)
		w.text("gpu_spec", "")
		w.text("gres", n.Gres)
		w.text("gres_drained", "N/A")
		w.text("gres_used", "")
		w.text("instance_id", n.InstanceID)
		w.text("instance_type", n.InstanceType)
		w.time("last_busy", n.registered)
		w.text("mcs_label", "")
		w.int("specialized_memory", n.MemSpecLimit)
		w.text("name", n.Name)
		w.texts("next_state_after_reboot", []string{"INVALID"})
		w.text("address", n.Address)
		w.text("hostname", n.Hostname)
		w.texts("state", n.state)
		w.text("operating_system", "Linux")
		w.text("owner", "")
		w.texts("partitions", n.Partitions)
		w.int("port", 6818)
		w.int("real_memory", n.RealMemory)
		w.int("res_cores_per_gpu", 0)
		w.text("comment", n.comment)
		w.text("reason", n.reason)
		w.time("reason_changed_at", n.reasonTime)
		w.text("reason_set_by_user", n.reasonUser)
		w.time("resume_after", time.Time{})
		w.text("reservation", n.reservation)
		if w.since("v0.0.45") {
			w.number("suspend_time", false, true, 0)
		}
		w.nodeUse(n)
	})
}

func (w *shape) nodeUse(n *shownNode) {
	w.int("alloc_memory", 0)
	w.int("alloc_cpus", int64(n.used))
	w.int("alloc_idle_cpus", int64(n.CPUs-n.used))
	w.text("tres_used", "")
	if !w.since("v0.0.45") {
		w.member("tres_weighted")
		w.b = append(w.b, "0.0"...)
	}
	w.time("slurmd_start_time", n.registered)
	w.int("sockets", int64(n.CPUs))
	w.int("threads", 1)
	w.int("temporary_disk", 0)
	w.int("weight", int64(n.weight))
	if w.since("v0.0.43") {
		w.text("topology", n.Topology)
	}
	cpus := strconv.Itoa(n.CPUs)
	w.text("tres", "cpu="+cpus+",mem="+strconv.FormatInt(n.RealMemory, 10)+"M,billing="+cpus)
	w.text("version", n.Version)
}

// longAnswer is how many bytes of an answer are held before they are sent.
const longAnswer = 1 << 18

// jobsAnswer writes jobs, or what Slurm writes when none changed: an empty list with a last_update of 0.
func (w *shape) jobsAnswer(jobs []job, now time.Time, unchanged bool) {
	rest := w.restOfJob()
	w.object("", func() {
		w.list("jobs", func() {
			for i := range jobs {
				w.job(&jobs[i], rest)
				if len(w.b) > longAnswer {
					w.flush()
				}
			}
		})
		w.time("last_backfill", time.Time{})
		warnings := []string{}
		switch {
		case unchanged:
			now = time.Time{}
			warnings = append(warnings, "No job changes since update_time")
		case len(jobs) == 0:
			warnings = append(warnings, "Zero jobs to dump")
		}
		w.time("last_update", now)
		w.meta()
		w.errors()
		w.warnings(warnings...)
	})
}

func (w *shape) pingAnswer(list []Controller) {
	w.object("", func() {
		w.list("pings", func() {
			for i, c := range list {
				w.object("", func() { w.controller(c, i) })
			}
		})
		w.meta()
		w.errors()
		w.warnings()
	})
}

func (w *shape) controller(c Controller, index int) {
	up := c.Status == pong
	w.text("hostname", c.Hostname)
	if !w.since("v0.0.45") {
		w.text("pinged", map[bool]string{true: "UP", false: "DOWN"}[up])
	}
	if w.since("v0.0.42") {
		w.bool("responding", up)
	}
	w.int("latency", 100)
	if !w.since("v0.0.45") {
		w.text("mode", map[bool]string{true: "primary", false: "backup"}[index == 0])
	}
	if w.since("v0.0.42") {
		w.bool("primary", index == 0)
	}
	if w.since("v0.0.45") {
		w.text("status", c.Status)
	}
}

func (w *shape) confAnswer(parameters []string) {
	w.object("", func() {
		w.object("slurm_conf", func() {
			w.text("ClusterName", w.slurm.options.Cluster)
			w.texts("SlurmctldParameters", parameters)
		})
		w.object("slurm_conf_meta", func() {
			w.text("SLURM_VERSION", w.slurm.options.Release)
		})
		w.meta()
		w.errors()
		w.warnings()
	})
}

// result writes an answer that has nothing but errors[].
func (w *shape) result(errors ...Error) {
	w.object("", func() {
		w.errors(errors...)
		w.warnings()
		w.meta()
	})
}
