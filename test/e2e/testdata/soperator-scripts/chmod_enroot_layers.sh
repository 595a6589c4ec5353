#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: lets everybody read and write the layers of enroot.
set -u

storage=/mnt/jail/mnt/image-storage
mountpoint -q "$storage" || exit 0
mkdir -p "$storage/enroot/cache"
chmod -R a+rw "$storage/enroot/cache"
