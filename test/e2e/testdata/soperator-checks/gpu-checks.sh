#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck gpu-checks of Soperator's chart: tests the GPUs of a worker.

#SBATCH --deadline=now+4hours
#SBATCH --time=50:00
#SBATCH --exclusive
#SBATCH --mem=0
count=$(nvidia-smi --query-gpu=name --format=csv,noheader | grep -c .)
case $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n1) in
*H100* | *H200* | *B200* | *B300*) ;;
*) echo "there are no checks for these $count GPUs" && exit 0 ;;
esac
last=$(srun sudo bash -l -c "health-checker run -e soperator_active_checks" | tail -n1)
[[ $(jq -r .status <<<"$last") != FAIL ]]
