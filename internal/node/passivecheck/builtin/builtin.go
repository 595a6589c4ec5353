// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin has the checks that check-runner brings with it. They run without bash. A check fails when what it tests is not as it
// should be; an error means that the check could not do its work, which lets the job run and is logged.
package builtin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/machine"
)

// Check is a built-in check.
type Check func(ctx context.Context, m *machine.Machine) (passivecheck.Result, error)

func all() map[string]Check {
	return map[string]Check{
		"alloc_gpus_busy":           allocGPUsBusy,
		"alloc_mem_used":            allocMemoryUsed,
		"boot_disk_full":            bootDiskFull,
		"cleanup_enroot":            cleanupEnroot,
		"drop_page_cache":           dropPageCache,
		"drop_posix_shmem":          dropPOSIXSharedMemory,
		"gpu_health_check":          gpuHealth,
		"idle_mem_used":             idleMemoryUsed,
		"job_tmpfs_delete":          jobTmpfsDelete,
		"job_tmpfs_delete_leftover": jobTmpfsDeleteLeftover,
		"job_tmpfs_recreate":        jobTmpfsRecreate,
		"map_job_dcgm":              mapJobDCGM,
		"nvme_raid_health":          nvmeRAIDHealth,
		"unmap_job_dcgm":            unmapJobDCGM,
	}
}

// Find returns the check with a name, or nil.
func Find(name string) Check { return all()[name] }

// Known reports whether there is a check with a name.
func Known(name string) bool { return Find(name) != nil }

// Names returns the names of all checks.
func Names() []string { return slices.Sorted(maps.Keys(all())) }

func passed(format string, args ...any) (passivecheck.Result, error) {
	return passivecheck.Result{State: passivecheck.Passed, Details: fmt.Sprintf(format, args...)}, nil
}

func failed(format string, args ...any) (passivecheck.Result, error) {
	return passivecheck.Result{State: passivecheck.Failed, Details: fmt.Sprintf(format, args...)}, nil
}

func skipped(format string, args ...any) (passivecheck.Result, error) {
	return passivecheck.Result{State: passivecheck.Skipped, Details: fmt.Sprintf(format, args...)}, nil
}

func notInstalled(what string) (passivecheck.Result, error) {
	return passivecheck.Result{State: passivecheck.Unavailable, Details: what + " is not installed"}, nil
}

// withoutJob returns the answer of a check that is about a job, where there is none.
func withoutJob() (passivecheck.Result, error) { return skipped("there is no job") }
