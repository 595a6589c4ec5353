// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// takes is whether an option has a value.
type takes int

const (
	something takes = iota
	nothing
	perhaps // only as --option=value
)

// option is one of sbatch.
type option struct {
	long  string
	short byte // 0 for none
	takes takes
	set   func(s *rest.Submission, value string) error
	// variable is the environment variable that gives the option to sbatch; empty for none.
	variable string
}

// maxNodes bounds what a list of nodes may stand for.
const maxNodes = rest.MaxNodes

// options are those that can be submitted by REST. The table in docs/users/activecheck.md has a line for each.
func options() []option {
	return []option{
		{"job-name", 'J', something, text(func(s *rest.Submission) *string { return &s.Name }), "SBATCH_JOB_NAME"},
		{"partition", 'p', something, text(func(s *rest.Submission) *string { return &s.Partition }), "SBATCH_PARTITION"},
		{"account", 'A', something, text(func(s *rest.Submission) *string { return &s.Account }), "SBATCH_ACCOUNT"},
		{"comment", 0, something, text(func(s *rest.Submission) *string { return &s.Comment }), ""},
		{"reservation", 0, something, text(func(s *rest.Submission) *string { return &s.Reservation }), "SBATCH_RESERVATION"},
		{"constraint", 'C', something, text(func(s *rest.Submission) *string { return &s.Constraint }), "SBATCH_CONSTRAINT"},
		{"chdir", 'D', something, text(func(s *rest.Submission) *string { return &s.Directory }), ""},
		{"output", 'o', something, text(func(s *rest.Submission) *string { return &s.Output }), "SBATCH_OUTPUT"},
		{"error", 'e', something, text(func(s *rest.Submission) *string { return &s.Error }), "SBATCH_ERROR"},
		{"time", 't', something, timeLimit, "SBATCH_TIMELIMIT"},
		{"deadline", 0, something, deadline, ""},
		{"nodes", 'N', something, nodes, ""},
		{"nodelist", 'w', something, list(func(s *rest.Submission) *[]string { return &s.Nodes }), ""},
		{"exclude", 'x', something, list(func(s *rest.Submission) *[]string { return &s.Exclude }), ""},
		{"ntasks", 'n', something, positive(func(s *rest.Submission) *int { return &s.Tasks }), ""},
		{"ntasks-per-node", 0, something, positive(func(s *rest.Submission) *int { return &s.TasksPerNode }), ""},
		{"cpus-per-task", 'c', something, positive(func(s *rest.Submission) *int { return &s.CPUsPerTask }), ""},
		{"mem", 0, something, memory(func(s *rest.Submission) **int64 { return &s.MemoryPerNode }), "SBATCH_MEM_PER_NODE"},
		{"mem-per-cpu", 0, something, memory(func(s *rest.Submission) **int64 { return &s.MemoryPerCPU }), "SBATCH_MEM_PER_CPU"},
		{"gpus-per-node", 0, something, gpus, "SBATCH_GPUS_PER_NODE"},
		{"gres", 0, something, gres, "SBATCH_GRES"},
		{"exclusive", 0, perhaps, exclusive, "SBATCH_EXCLUSIVE"},
		{"requeue", 0, nothing, requeue(true), "SBATCH_REQUEUE"},
		{"no-requeue", 0, nothing, requeue(false), "SBATCH_NO_REQUEUE"},
		{"signal", 0, something, signal, "SBATCH_SIGNAL"},
	}
}

// text sets a text, which may not be empty.
func text(of func(*rest.Submission) *string) func(*rest.Submission, string) error {
	return func(s *rest.Submission, value string) error {
		if value == "" {
			return errors.New("the value is empty")
		}
		*of(s) = value
		return nil
	}
}

// list sets a list of nodes.
func list(of func(*rest.Submission) *[]string) func(*rest.Submission, string) error {
	return func(s *rest.Submission, value string) error {
		names, err := hostlist.Expand(value, maxNodes)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return errors.New("the value is empty")
		}
		*of(s) = names
		return nil
	}
}

// positive sets a number above 0.
func positive(of func(*rest.Submission) *int) func(*rest.Submission, string) error {
	return func(s *rest.Submission, value string) (err error) {
		*of(s), err = number(value)
		return err
	}
}

func requeue(again bool) func(*rest.Submission, string) error {
	return func(s *rest.Submission, _ string) error {
		s.Requeue = &again
		return nil
	}
}

func exclusive(s *rest.Submission, value string) error {
	if value != "" {
		return fmt.Errorf("value %q is not supported", value)
	}
	s.Exclusive = true
	return nil
}

// gpus sets the GPUs of each node; an empty value is none, as with sbatch. Both options may be there: --gres for other resources.
func gpus(s *rest.Submission, value string) error {
	if err := checkResource(value); value != "" && err != nil {
		return err
	}
	s.GPUsPerNode = value
	return nil
}

// gres sets generic resources of each node: name[[:type]:count], with commas.
func gres(s *rest.Submission, value string) error {
	for one := range strings.SplitSeq(value, ",") {
		name, count, counted := strings.Cut(one, ":")
		if !word(name) {
			return fmt.Errorf("%q is not name[:type][:count]", one)
		}
		if counted && checkResource(count) != nil {
			return fmt.Errorf("%q is not name[:type][:count]", one)
		}
	}
	s.Gres = strings.Split(value, ",")
	return nil
}
