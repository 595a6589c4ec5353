#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: writes down for the exporter of DCGM which job has a GPU.
set -u

mkdir -p /var/run/nebius/slurm
for gpu in ${SLURM_JOB_GPUS//,/ }; do echo "$SLURM_JOB_ID" >"/var/run/nebius/slurm/$gpu"; done
