#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: empties the scratch directory of the jail. Nothing calls it.
set -u

[[ ! -d /mnt/jail/scratch ]] || find /mnt/jail/scratch -mindepth 1 -delete
