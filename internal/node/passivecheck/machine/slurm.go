// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
)

// ErrNoNode means that slurmctld does not have the node: slurmd runs HealthCheckProgram before it has registered a dynamic one.
var ErrNoNode = errors.New("slurmctld does not have the node")

// ErrElsewhere means that another machine has registered under the name of this one: a pod whose Kubernetes node was lost goes on, or comes
// back, and has been replaced. The other one must not be drained for what is found here.
var ErrElsewhere = errors.New("another machine is that node now")

// Node returns what slurmctld reports about the node.
func (m *Machine) Node(ctx context.Context) (passivecheck.Node, error) {
	return m.node.get(func() (passivecheck.Node, error) {
		text, err := m.run(ctx, "scontrol", "show", "node", m.Name)
		if err != nil && strings.TrimSpace(text) == "Node "+m.Name+" not found" {
			return passivecheck.Node{}, fmt.Errorf("asking slurmctld for node %s: %w", m.Name, ErrNoNode)
		}
		if err != nil {
			return passivecheck.Node{}, fmt.Errorf("asking slurmctld for node %s: %w", m.Name, err)
		}
		node, err := passivecheck.ParseNode(text)
		if err != nil {
			return passivecheck.Node{}, fmt.Errorf("reading what slurmctld says of node %s: %w", m.Name, err)
		}
		here, err := isHere(node.Address)
		if err == nil && !here {
			err = fmt.Errorf("slurmctld knows it at %s: %w", node.Address, ErrElsewhere)
		}
		if err != nil {
			return passivecheck.Node{}, fmt.Errorf("comparing the address of node %s: %w", m.Name, err)
		}
		return node, nil
	})
}

// isHere reports whether an address is one of this machine. A name may be.
func isHere(address string) (bool, error) {
	wanted, err := netip.ParseAddr(strings.Trim(address, "[]"))
	if err != nil {
		return true, nil //nolint:nilerr // a name
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("listing the addresses of this machine: %w", err)
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == wanted.Unmap()
	}), nil
}

// Change changes the node in Slurm. What was known of it is forgotten.
func (m *Machine) Change(ctx context.Context, action passivecheck.Action) error {
	args := []string{"update", "nodename=" + m.Name}
	switch action.Kind {
	case passivecheck.Drain:
		args = append(args, "state=drain", "reason="+action.Text)
	case passivecheck.Undrain:
		args = append(args, "state=resume")
	case passivecheck.SetComment:
		args = append(args, "comment="+action.Text)
	default:
		return nil
	}
	m.node = answer[passivecheck.Node]{}
	if _, err := m.run(ctx, "scontrol", args...); err != nil {
		return fmt.Errorf("changing node %s: %w", m.Name, err)
	}
	return nil
}

// JobMemory returns how much memory the job has on the node, in bytes: from its cgroup, or from slurmctld where there is none yet.
func (m *Machine) JobMemory(ctx context.Context) (int64, error) {
	return m.memory.get(func() (int64, error) {
		if m.Job == nil {
			return 0, fmt.Errorf("context %s has no job", m.Context)
		}
		id := strconv.FormatInt(m.Job.ID, 10)
		for _, dir := range m.jobCgroups(id) {
			content, err := os.ReadFile(filepath.Join(dir, "memory.max")) //nolint:gosec // a file of the kernel
			if err != nil {
				continue // the next source knows it
			}
			if limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64); err == nil && limit > 0 {
				return limit, nil
			}
		}
		text, err := m.run(ctx, "scontrol", "show", "job", "--details", id)
		if err != nil {
			return 0, fmt.Errorf("asking slurmctld for job %s: %w", id, err)
		}
		memory, err := passivecheck.ParseJobMemory(text, m.Name)
		if err != nil {
			return 0, fmt.Errorf("reading what slurmctld says of job %s: %w", id, err)
		}
		return memory * passivecheck.Mebibyte, nil
	})
}

// jobCgroups returns the directories of a job, or of all for "*", which slurmstepd has made. Slurm 25.05 and later name the scope after the
// node.
func (m *Machine) jobCgroups(id string) []string {
	var out []string
	for _, pattern := range []string{"*slurmstepd.scope", "*/*slurmstepd.scope"} {
		// The pattern is well formed, which is the only error there is.
		found, _ := filepath.Glob(m.Path("/sys/fs/cgroup/" + pattern + "/job_" + id))
		out = append(out, found...)
	}
	return out
}

// stepTitle is the name that slurmstepd gives its process: slurmstepd: [12.batch].
var stepTitle = regexp.MustCompile(`^slurmstepd: \[([0-9]+)\.`)

// StepJobs are the jobs that have a slurmstepd here.
func (m *Machine) StepJobs() map[int64]bool {
	jobs := map[int64]bool{}
	note := func(digits string) {
		if id, err := strconv.ParseInt(digits, 10, 64); err == nil {
			jobs[id] = true
		}
	}
	for _, dir := range m.jobCgroups("*") {
		note(strings.TrimPrefix(filepath.Base(dir), "job_"))
	}
	lines, _ := filepath.Glob(m.Path("/proc/[0-9]*/cmdline"))
	for _, line := range lines {
		content, err := os.ReadFile(line) //nolint:gosec // a file of the kernel
		if err != nil {
			continue // the process has ended
		}
		if match := stepTitle.FindSubmatch(content); match != nil {
			note(string(match[1]))
		}
	}
	return jobs
}

// QueuedJobs are the jobs that slurmctld has on the node and that have not ended.
func (m *Machine) QueuedJobs(ctx context.Context) (map[int64]bool, error) {
	text, err := m.run(ctx, "squeue", "--noheader", "--nodelist="+m.Name, "--format=%A")
	if err != nil {
		return nil, fmt.Errorf("asking slurmctld for the jobs of node %s: %w", m.Name, err)
	}
	jobs := map[int64]bool{}
	for word := range strings.FieldsSeq(text) {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the jobs of node %s: %q is no job", m.Name, word)
		}
		jobs[id] = true
	}
	return jobs, nil
}
