#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck ensure-healthy-nodes of Soperator's chart: fails where a node has a reason, or is DOWN, DRAIN or FAIL.

#SBATCH --time=5:00
bad=$(scontrol show nodes --json | jq -r '.nodes[] | select((.reason // "") != "" or any(.state[]; test("DOWN|DRAIN|FAIL"))) | .name')
[[ -z $bad ]] || { echo "not healthy: $bad" && exit 1; }
