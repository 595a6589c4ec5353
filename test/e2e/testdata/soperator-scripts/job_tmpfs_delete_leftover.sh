#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: removes directories in memory of jobs that are not here any more, a minute old or older.
set -u

[[ -d /mnt/jail/mnt/memory ]] && mountpoint -q /mnt/jail/mnt/memory || exit 0
jobs=$(scontrol listjobs --json | jq -r '.jobs | map(.job_id // .) | .[]') || exit 0
for directory in /mnt/jail/mnt/memory/job_*; do
	job=${directory##*/job_}
	[[ $job =~ ^[0-9]+$ ]] || continue
	! grep -qxF "$job" <<<"$jobs" || continue
	(($(date +%s) - $(stat --format=%Y "$directory") >= 60)) || continue
	rm -rf --one-file-system "$directory"
done
