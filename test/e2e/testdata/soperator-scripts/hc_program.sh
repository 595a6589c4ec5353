#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for hc_program.sh of Soperator's chart: runs the checks of this context. Without a Python that works there are none.
set -u

/usr/bin/python3 -c '' || exit 0
export CHECKS_CONTEXT=hc_program CHECKS_CONFIG=/opt/slurm_scripts/checks.json CHECKS_OUTPUTS_BASE_DIR=/opt/soperator-outputs/local PATH
export CHECKS_RUNNER_OUTPUT=/mnt/jail/opt/soperator-outputs/local/slurm_scripts/$SLURMD_NODENAME.check_runner.hc_program.out
exec /usr/bin/python3 /opt/slurm_scripts/check_runner.py 2>&1
