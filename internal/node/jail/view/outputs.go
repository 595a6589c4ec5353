// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/coxswain-hpc/coxswain/internal/node/jail"
)

// outputDirs returns the directories in which the scripts, checks and jobs of Soperator's charts leave what they print, parents first:
// docs/contributors/predecessors/soperator-installation.md#directories-for-outputs. local is one of the Kubernetes node where the spec says
// so, and shared is never.
func outputDirs() []string {
	const outputs = "/opt/soperator-outputs"
	return []string{
		outputs, outputs + "/local", outputs + "/local/nccl_logs", outputs + "/local/slurm_jobs", outputs + "/local/slurm_scripts",
		outputs + "/local/task_prolog", outputs + "/local/health_checker_cmd_stdout", outputs + "/shared", outputs + "/shared/nccl_profiles",
		outputs + "/shared/acceptance",
	}
}

// MakeOutputDirs makes the directories for outputs where the jail lacks them, and lets everybody write there: scripts write as the users of
// jobs, and collectors delete. It goes on after one that cannot be made. A directory that is as it should be is not written to.
func MakeOutputDirs(root *jail.Root) error {
	strict := root.WithoutLinks()
	var errs []error
	if err := strict.Mkdir("/opt", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a directory for outputs: %w", err)
	}
	for _, dir := range outputDirs() {
		err := strict.Mkdir(dir, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, fmt.Errorf("making a directory for outputs: %w", err))
			continue
		}
		if err := strict.ChmodDirectory(dir, 0o777); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
