#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: passes unless processes use a GPU that the job was given.
set -u

set -e
ls /run/nvidia/driver >/dev/null
smi=(nvidia-smi)
[[ -z $(ls -A /run/nvidia/driver) ]] || smi=(chroot /run/nvidia/driver nvidia-smi)
pids=$("${smi[@]}" --id="$SLURM_JOB_GPUS" --query-compute-apps=pid --format=csv,noheader | sed '/^$/d' | tr '\n' ' ')
[[ -z $pids ]] && exit 0
echo "processes $pids use GPUs: end them, wait for them, or reboot the node" >&3
exit 1
