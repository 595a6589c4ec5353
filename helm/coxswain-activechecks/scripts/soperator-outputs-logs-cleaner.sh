#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# soperator-outputs-logs-cleaner: deletes old outputs of checks and of Slurm's scripts from the jail. It runs as root in a pod with the jail.
#
# Environment:
#   JAIL           where the jail is mounted; /mnt/jail by default
#   KEEP_MINUTES   minutes since the last write after which a file is deleted; 1440 by default
set -eu

outputs=${JAIL:-/mnt/jail}/opt/soperator-outputs
if [ -L "$outputs" ] || [ ! -d "$outputs" ]; then
	echo "SKIP: $outputs is no directory"
	exit 0
fi
# find does not follow links, which anybody may put there.
deleted=$(find "$outputs" -xdev -mindepth 1 ! -type d -mmin "+${KEEP_MINUTES:-1440}" -print -delete | wc -l)
echo "PASS: deleted $deleted files"
