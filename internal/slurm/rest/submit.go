// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// Submission is a batch job to submit. What is empty is left to Slurm. Each field is an option of sbatch(1), which describes it.
type Submission struct {
	// Name is --job-name.
	Name string
	// Script is the batch script, with its first line "#!…". Slurm reads its #SBATCH lines only in sbatch, not here; see package batch.
	Script string
	// Partition, Account and Reservation are where it runs, and for whom.
	Partition, Account, Reservation string
	// Comment is free text that lists of jobs show. It distinguishes the jobs of one run from others.
	Comment string
	// Constraint are features that its nodes must have.
	Constraint string
	// Nodes are the nodes that it must have, all of them (--nodelist), and Exclude those that it must not have.
	Nodes, Exclude []string
	// MinNodes and MaxNodes are --nodes. Without them it has as many as Nodes.
	MinNodes, MaxNodes int
	// Tasks, TasksPerNode and CPUsPerTask are --ntasks, --ntasks-per-node and --cpus-per-task.
	Tasks, TasksPerNode, CPUsPerTask int
	// MemoryPerNode and MemoryPerCPU are --mem and --mem-per-cpu, in MiB. Of the memory of each node, 0 is all.
	MemoryPerNode, MemoryPerCPU *int64
	// GPUsPerNode is --gpus-per-node, "8" or "h100:8", and Gres are the resources of --gres, "gpu:8".
	GPUsPerNode string
	Gres        []string
	// Exclusive asks for whole nodes.
	Exclusive bool
	// Requeue is --requeue or --no-requeue.
	Requeue *bool
	// TimeLimit is counted in whole minutes, rounded up. Zero is the partition's default, unless it is Unlimited.
	TimeLimit time.Duration
	Unlimited bool
	// Deadline is how long after the submission the job must have ended.
	Deadline time.Duration
	// Warning is --signal.
	Warning *Warning
	// Directory is the working directory, which Slurm requires. Output and Error are paths; see sbatch(1), "filename pattern".
	Directory, Output, Error string
	// Environment are variables as NAME=value. Slurm requires at least one. Those that sbatch sets are added.
	Environment []string
}

// Warning is a signal that a job gets before its time limit.
type Warning struct {
	// Signal is its name without SIG, or its number.
	Signal string
	// Before is how long before the limit, in whole seconds. Slurm may send it a minute earlier.
	Before time.Duration
	// Batch is true if the batch script gets the signal, and not its steps.
	Batch bool
}

// submittedJob is a Submission in the words of slurmrestd.
type submittedJob struct {
	Name          string   `json:"name,omitempty"`
	Script        string   `json:"script"`
	Partition     string   `json:"partition,omitempty"`
	Account       string   `json:"account,omitempty"`
	Reservation   string   `json:"reservation,omitempty"`
	Comment       string   `json:"comment,omitempty"`
	Constraint    string   `json:"constraints,omitempty"`
	Nodes         []string `json:"required_nodes,omitempty"`
	Exclude       []string `json:"excluded_nodes,omitempty"`
	MinNodes      int      `json:"minimum_nodes,omitempty"`
	MaxNodes      int      `json:"maximum_nodes,omitempty"`
	Tasks         int      `json:"tasks,omitempty"`
	TasksPerNode  int      `json:"tasks_per_node,omitempty"`
	CPUsPerTask   int      `json:"cpus_per_task,omitempty"`
	MemoryPerNode *number  `json:"memory_per_node,omitempty"`
	MemoryPerCPU  *number  `json:"memory_per_cpu,omitempty"`
	TresPerNode   string   `json:"tres_per_node,omitempty"`
	TresPerTask   string   `json:"tres_per_task,omitempty"`
	Flags         []string `json:"flags,omitempty"`
	Shared        []string `json:"shared,omitempty"`
	Requeue       *bool    `json:"requeue,omitempty"`
	TimeLimit     *number  `json:"time_limit,omitempty"`
	Deadline      int64    `json:"deadline,omitempty"`
	Signal        string   `json:"kill_warning_signal,omitempty"`
	SignalBefore  *number  `json:"kill_warning_delay,omitempty"`
	SignalFlags   []string `json:"kill_warning_flags,omitempty"`
	Directory     string   `json:"current_working_directory"`
	Output        string   `json:"standard_output,omitempty"`
	Error         string   `json:"standard_error,omitempty"`
	Environment   []string `json:"environment"`
}

// forSlurm is the submission in the words of slurmrestd.
func (s Submission) forSlurm(now time.Time) submittedJob {
	j := submittedJob{
		Name: s.Name, Script: s.Script, Partition: s.Partition, Account: s.Account, Reservation: s.Reservation, Comment: s.Comment,
		Constraint: s.Constraint, Nodes: s.Nodes, Exclude: s.Exclude, MinNodes: cmp.Or(s.MinNodes, len(s.Nodes)), MaxNodes: s.MaxNodes,
		Tasks: s.Tasks, TasksPerNode: s.TasksPerNode, CPUsPerTask: s.CPUsPerTask, MemoryPerNode: given(s.MemoryPerNode),
		MemoryPerCPU: given(s.MemoryPerCPU), TresPerNode: s.tres(), Requeue: s.Requeue, TimeLimit: minutes(s.TimeLimit), Directory: s.Directory,
		Output: s.Output, Error: s.Error, Environment: append(slices.Clone(s.Environment), s.variables()...),
	}
	if s.CPUsPerTask > 0 { // as sbatch does
		j.TresPerTask, j.Flags = fmt.Sprintf("cpu=%d", s.CPUsPerTask), []string{"EXACT_CPU_COUNT_REQUESTED"}
	}
	if s.Exclusive {
		j.Shared = []string{"none"}
	}
	if s.Unlimited {
		j.TimeLimit = &number{Infinite: true}
	}
	if s.Deadline > 0 {
		j.Deadline = now.Add(s.Deadline).Unix()
	}
	if w := s.Warning; w != nil {
		j.Signal, j.SignalBefore = w.Signal, &number{Set: true, Number: int64(w.Before / time.Second)}
		if w.Batch {
			j.SignalFlags = []string{"BATCH_JOB"}
		}
	}
	return j
}

// variables are those that only sbatch sets, for a script and the steps in it; see sbatch(1), OUTPUT ENVIRONMENT VARIABLES.
func (s Submission) variables() []string {
	out := []string{"SLURM_SUBMIT_DIR=" + s.Directory}
	if s.TasksPerNode > 0 {
		out = append(out, fmt.Sprintf("SLURM_NTASKS_PER_NODE=%d", s.TasksPerNode))
		if s.Tasks == 0 {
			tasks := s.TasksPerNode * max(1, s.MinNodes, len(s.Nodes))
			out = append(out, fmt.Sprintf("SLURM_NTASKS=%d", tasks), fmt.Sprintf("SLURM_NPROCS=%d", tasks))
		}
	}
	if s.CPUsPerTask > 0 {
		out = append(out, fmt.Sprintf("SLURM_CPUS_PER_TASK=%d", s.CPUsPerTask), fmt.Sprintf("SLURM_TRES_PER_TASK=cpu=%d", s.CPUsPerTask))
	}
	if s.GPUsPerNode != "" {
		out = append(out, "SLURM_GPUS_PER_NODE="+s.GPUsPerNode)
	}
	return out
}

// IsGPU reports whether a resource, of --gres or of the Gres of a node, is GPUs: "gpu", "gpu:8", "gpu:h100:8".
func IsGPU(gres string) bool { return gres == "gpu" || strings.HasPrefix(gres, "gpu:") }

// tres are the resources of each node as Slurm keeps them: "gres/gpu:2".
func (s Submission) tres() string {
	var all []string
	for _, one := range s.Gres {
		all = append(all, "gres/"+one)
	}
	if s.GPUsPerNode != "" {
		all = append(all, "gres/gpu:"+s.GPUsPerNode)
	}
	return strings.Join(all, ",")
}

// given is a number in a message; nil is left out.
func given(n *int64) *number {
	if n == nil {
		return nil
	}
	return &number{Set: true, Number: *n}
}

// minutes is a time in whole minutes, rounded up; zero is left out.
func minutes(d time.Duration) *number {
	if d <= 0 {
		return nil
	}
	return &number{Set: true, Number: int64((d + time.Minute - 1) / time.Minute)}
}

// SubmitJob submits a batch job as the user of an issuer's tokens, and returns its number. It is not repeated when no answer comes:
// the job may be there.
//
// A user that slurmctld cannot look up is Unauthorized in 26.05. 24.11 accepts the job for uid 99 and never runs it; JobRecord.User
// is empty then.
func (c *Client) SubmitJob(ctx context.Context, as token.Issuer, s Submission) (id int64, err error) {
	fail := func(err error) (int64, error) {
		return 0, fmt.Errorf("submitting a job %s to Slurm by %s: %w", shorten(s.Name, 200), c, err)
	}
	switch {
	case as == nil:
		return fail(errors.New("it has no user"))
	case s.Script == "" || s.Directory == "" || len(s.Environment) == 0:
		return fail(errors.New("it has no script, no working directory or no environment"))
	}
	body, err := encode(map[string]submittedJob{"job": s.forSlurm(c.options.Now())})
	if err != nil {
		return fail(err)
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "job/submit", body: body, as: as, decode: func(r *reader) (errs []slurmError, err error) {
		id, errs, err = decodeSubmitted(r)
		return errs, err
	}})
	if err != nil {
		return fail(err)
	}
	return id, nil
}

// errNoJob is an answer about a job without a job.
var errNoJob = errors.New("the answer has no job")

// decodeSubmitted reads an answer to POST job/submit.
func decodeSubmitted(r *reader) (id int64, errs []slurmError, err error) {
	var a answer
	err = a.decode(r, func(key string) bool {
		if key != "job_id" || r.peek() == 'n' {
			return false
		}
		id = r.quantity().number
		return true
	})
	if err == nil && len(a.errors) == 0 && id <= 0 {
		err = errNoJob
	}
	return id, a.errors, err
}
