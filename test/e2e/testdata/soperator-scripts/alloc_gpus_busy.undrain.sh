#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: passes once no process uses a GPU.
set -u

set -e
ls /run/nvidia/driver >/dev/null
smi=(nvidia-smi)
[[ -z $(ls -A /run/nvidia/driver) ]] || smi=(chroot /run/nvidia/driver nvidia-smi)
[[ -z $("${smi[@]}" --query-compute-apps=pid --format=csv,noheader | tr -d '[:space:]') ]]
