// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// unsupported are the variables that sbatch of either release reads and that cannot be carried over. Three more are about sbatch itself and
// change no job: SBATCH_DEBUG, SBATCH_IGNORE_PBS and SBATCH_WAIT.
const unsupported = "ACCTG_FREQ ARRAY_INX BATCH BURST_BUFFER CLUSTERS CLUSTER_CONSTRAINT CONSOLIDATE_SEGMENTS CONTAINER CONTAINER_ID CONTAINER_TYPE " +
	"CORE_SPEC CPUS_PER_GPU CPU_FREQ_REQ DELAY_BOOT DISTRIBUTION EXPORT GET_USER_ENV GPUS GPUS_PER_SOCKET GPUS_PER_TASK GPU_BIND GPU_FREQ " +
	"GRES_FLAGS HINT INPUT MEM_BIND MEM_PER_GPU NETWORK NO_KILL OPEN_MODE OVERCOMMIT POWER PROFILE QOS REQ_SWITCH SEGMENT_SIZE SPREAD_JOB " +
	"SPREAD_SEGMENTS THREADS_PER_CORE THREAD_SPEC TRES_BIND TRES_PER_TASK USE_MIN_NODES WAIT4SWITCH WAIT_ALL_NODES WCKEY"

// readVariables reads the variables of sbatch, in the order of their names.
func readVariables(s *rest.Submission, variables map[string]string) (errs []error) {
	all := options()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		short, ours := strings.CutPrefix(name, "SBATCH_")
		if !ours {
			continue
		}
		at := slices.IndexFunc(all, func(o option) bool { return o.variable == name })
		if at < 0 {
			if slices.Contains(strings.Fields(unsupported), short) {
				errs = append(errs, fmt.Errorf("variable %s is not supported", name))
			}
			continue
		}
		if err := all[at].set(s, variables[name]); err != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", name, err))
		}
	}
	return errs
}
