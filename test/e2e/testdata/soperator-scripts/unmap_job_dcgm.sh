#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: takes away what map_job_dcgm wrote.
set -u

for gpu in ${SLURM_JOB_GPUS//,/ }; do rm -f "/var/run/nebius/slurm/$gpu"; done
