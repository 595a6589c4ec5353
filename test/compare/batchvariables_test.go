// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/batch"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// withVariables are variables of sbatch, NAME=value, beside #SBATCH lines.
func withVariables() []struct {
	lines     string
	variables []string
} {
	return []struct {
		lines     string
		variables []string
	}{
		{"", []string{"SBATCH_JOB_NAME=a", "SBATCH_PARTITION=main", "SBATCH_TIMELIMIT=5", "SBATCH_CONSTRAINT=f", "SBATCH_RESERVATION=r"}},
		{"", []string{"SBATCH_OUTPUT=/tmp/a", "SBATCH_ERROR=/tmp/b", "SBATCH_SIGNAL=USR1@30", "SBATCH_NONSENSE=1"}},
		{"", []string{"SBATCH_GPUS_PER_NODE=2"}},
		{"", []string{"SBATCH_GRES=gpu:1"}},
		{"", []string{"SBATCH_MEM_PER_NODE=100"}},
		{"", []string{"SBATCH_MEM_PER_CPU=100"}},
		{"", []string{"SBATCH_EXCLUSIVE="}},
		{"", []string{"SBATCH_REQUEUE="}},
		{"", []string{"SBATCH_NO_REQUEUE="}},
		{"", []string{"SBATCH_NO_REQUEUE=", "SBATCH_REQUEUE="}},
		{"#SBATCH -J a -t 5 --gpus-per-node=1", []string{"SBATCH_JOB_NAME=b", "SBATCH_TIMELIMIT=7", "SBATCH_GPUS_PER_NODE=2"}},
		{"#SBATCH --mem=100", []string{"SBATCH_MEM_PER_NODE=200"}},
		{"#SBATCH --requeue", []string{"SBATCH_NO_REQUEUE=1"}},
		{"", []string{"SBATCH_GPUS_PER_NODE="}},
		{"#SBATCH --gpus-per-node=1", []string{"SBATCH_GPUS_PER_NODE="}},
	}
}

// A variable that sbatch reads is carried over or refused, unless it is about sbatch itself.
func TestNoVariableOfSbatchIsLost(t *testing.T) {
	variable := regexp.MustCompile(`^SBATCH_[A-Z0-9_]+$`)
	for _, root := range realslurm.Roots(t) {
		program, err := os.ReadFile(filepath.Join(root.Dir, "usr/bin/sbatch"))
		if err != nil {
			t.Fatal(err)
		}
		names := slices.DeleteFunc(strings.Split(string(program), "\x00"), func(text string) bool { return !variable.MatchString(text) })
		if len(names) < 50 {
			t.Fatalf("sbatch of Slurm %s has only the variables %q", root.Release, names)
		}
		for _, name := range names {
			got, err := batch.Parse("#!/bin/bash\n", map[string]string{name: "1"})
			if err == nil && reflect.DeepEqual(got, rest.Submission{Script: "#!/bin/bash\n"}) &&
				!slices.Contains([]string{"SBATCH_DEBUG", "SBATCH_IGNORE_PBS", "SBATCH_WAIT"}, name) {
				t.Errorf("sbatch of Slurm %s reads %s, which package batch leaves out", root.Release, name)
			}
		}
	}
}
