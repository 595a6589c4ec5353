#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck wait-for-soperatorchecks-srun-ready of Soperator's chart: waits until the user of the checks can run a job from this pod.

set -eu
ln -s /mnt/jail/etc/passwd /etc/passwd
ln -s /mnt/jail/etc/group /etc/group
ln -s /mnt/jail/etc/shadow /etc/shadow
ln -s /mnt/jail/etc/gshadow /etc/gshadow
ln -s /mnt/jail/etc/slurm /etc/slurm
for _ in {1..120}; do
	if runuser -u soperatorchecks -- srun --mpi=none --job-name=test-controller-is-ready --ntasks=1 --time=1 --partition=hidden hostname; then exit 0; fi
	sleep 2
done
exit 1
