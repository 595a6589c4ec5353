// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/test/login"
)

// user is a user who is logged in. What fails for the user fails the test.
type user struct{ *login.Session }

// runs runs a shell command and returns what it printed.
func (u *user) runs(t *testing.T, command string) string {
	t.Helper()
	out, err := u.Run(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// submits submits a batch script and returns the number of the job.
func (u *user) submits(t *testing.T, script string, options ...string) int {
	t.Helper()
	job, err := u.Submit(t.Context(), login.Batch{Script: script, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// awaits waits until all tasks of a job are in a state, by squeue.
func (u *user) awaits(t *testing.T, job int, state string) []login.Task {
	t.Helper()
	var tasks []login.Task
	eventually(t, patient, fmt.Sprintf("job %d to be %s", job, state), func(ctx context.Context) error {
		var err error
		if tasks, err = u.Queue(ctx, job); err != nil {
			return err
		}
		for _, task := range tasks {
			if task.State != state {
				return fmt.Errorf("task %s is %s (%s)", task.ID, task.State, task.Reason)
			}
		}
		if len(tasks) == 0 {
			return fmt.Errorf("squeue does not know the job")
		}
		return nil
	})
	return tasks
}

// seesAccounted waits until slurmdbd has a job of one task, COMPLETED.
func (u *user) seesAccounted(t *testing.T, job int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	all, err := u.AwaitAccounted(ctx, job, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range all {
		if task.State != "COMPLETED" {
			t.Errorf("slurmdbd says that task %s is %s, not COMPLETED", task.ID, task.State)
		}
	}
}

// walksThrough does what the demo does: an array of jobs, and a step on two nodes.
func (u *user) walksThrough(t *testing.T) {
	t.Helper()
	job := u.submits(t, "echo task $SLURM_ARRAY_TASK_ID of $(id -un)\n", "--array=1-4", "--output=array-%A-%a.out")
	hosts := strings.Fields(u.runs(t, "srun --nodes=2 hostname"))
	slices.Sort(hosts)
	if len(slices.Compact(hosts)) != 2 {
		t.Errorf("srun --nodes=2 hostname printed %v, not two hosts", hosts)
	}
	for _, task := range u.awaits(t, job, "COMPLETED") {
		t.Logf("task %s ran on %s", task.ID, task.Nodes)
	}
	name := u.runs(t, "id -un")
	var want []string
	for i := range 4 {
		want = append(want, fmt.Sprintf("task %d of %s", i+1, name))
	}
	got := strings.Split(u.runs(t, fmt.Sprintf("cat array-%d-*.out", job)), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the array's output differs (-want +got):\n%s", diff)
	}
}

// submitsBlocked submits a job that runs until release is called, and waits until it runs.
func (u *user) submitsBlocked(t *testing.T, options ...string) (job int, release func(*testing.T)) {
	t.Helper()
	job = u.submits(t, "until [ -e released-$SLURM_JOB_ID ]; do sleep 1; done\n", options...)
	u.awaits(t, job, "RUNNING")
	return job, func(t *testing.T) {
		t.Helper()
		u.runs(t, fmt.Sprintf("touch released-%d", job))
	}
}

// seesNoJobs waits until no job waits, runs or completes: what ends a job may go on for a while after srun has returned.
func (u *user) seesNoJobs(t *testing.T) {
	t.Helper()
	eventually(t, patient, "squeue to show no job", func(ctx context.Context) error {
		out, err := u.Run(ctx, "squeue --all --noheader")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("it shows %q", out)
		}
		return err
	})
}

// seesNode waits until sinfo shows a node in a state.
func (u *user) seesNode(t *testing.T, node, state string) {
	t.Helper()
	eventually(t, patient, "Slurm node "+node+" to be "+state, func(ctx context.Context) error {
		out, err := u.Run(ctx, "sinfo --noheader --Node --nodes="+node+" --format=%T")
		if err != nil {
			return err
		}
		if got, _, _ := strings.Cut(out, "\n"); got != state {
			return fmt.Errorf("sinfo says %q", out)
		}
		return nil
	})
}
