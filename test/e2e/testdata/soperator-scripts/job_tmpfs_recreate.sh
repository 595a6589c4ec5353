#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: makes the directory of the job in memory, or empties it.
set -u

[[ -d /mnt/jail/mnt/memory ]] && mountpoint -q /mnt/jail/mnt/memory || exit 0
directory=/mnt/jail/mnt/memory/job_$SLURM_JOB_ID
if [[ -d $directory ]]; then find "$directory" -mindepth 1 -delete; else mkdir "$directory"; fi
chmod 0777 "$directory"
