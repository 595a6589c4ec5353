#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for task_prolog.sh of Soperator's chart. The user of the job runs it in the jail before each task; if it fails, so does the task.
set -euxo pipefail

if [[ $SLURM_LOCALID == 0 ]]; then
	# The control group of the job's user, so that containers of Docker count to the job. There is none with version 1.
	group=$(sed -n '1s/^0:://p' /proc/self/cgroup)
	while [[ -n $group && $group != / && ${group##*/} != user ]]; do group=${group%/*}; done
	if [[ ${group##*/} == user ]]; then
		echo "export DOCKER_HOST=unix:///var/run/soperator-docker.sock"
		echo "export DOCKER_CUSTOM_HEADERS=Cgroup-Parent=$group"
	fi
	outputs=/opt/soperator-outputs/local/task_prolog
	(umask 000 && mkdir -p "$outputs")
	env | grep -E '^(SLURM|SLURMD|SRUN|SBATCH)_' >"$outputs/${SLURMD_NODENAME-}.${SLURM_JOB_ID-}.${SLURM_STEP_ID-}.${SLURM_ARRAY_TASK_ID-}.out"
fi
if [[ -n ${SLURM_JOB_ID_SOPERATOR_TASK_PROLOG-} && $SLURM_JOB_ID_SOPERATOR_TASK_PROLOG != "$SLURM_JOB_ID" && -z ${SOPERATOR_SUPPRESS_RECURSIVE_SRUN-} ]]; then
	echo "print this job was submitted by job $SLURM_JOB_ID_SOPERATOR_TASK_PROLOG"
fi
echo "export SLURM_JOB_ID_SOPERATOR_TASK_PROLOG=$SLURM_JOB_ID"
