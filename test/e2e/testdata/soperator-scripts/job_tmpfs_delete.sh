#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: removes the directory of the job in memory.
set -u

[[ -d /mnt/jail/mnt/memory ]] && mountpoint -q /mnt/jail/mnt/memory || exit 0
rm -rf --one-file-system "/mnt/jail/mnt/memory/job_$SLURM_JOB_ID"
