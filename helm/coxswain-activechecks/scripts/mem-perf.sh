#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# mem-perf: measures how fast one CPU of this node writes memory. dd reads zeros into a buffer that no cache holds. It runs as a Slurm job.
#
# Environment:
#   MEM_PERF_BUFFER_MIB   size of the buffer in MiB; 128 by default
#   MEM_PERF_PASSES       how often it is filled; 32 by default
#   MEM_PERF_MIN_MIBPS    least speed in MiB/s; 500 by default
set -eu

buffer=${MEM_PERF_BUFFER_MIB:-128}
passes=${MEM_PERF_PASSES:-32}
least=${MEM_PERF_MIN_MIBPS:-500}

said=$(LC_ALL=C dd if=/dev/zero of=/dev/null bs="${buffer}M" count="$passes" iflag=fullblock 2>&1) || true
# The last line is: 4294967296 bytes (4.3 GB, 4.0 GiB) copied, 0.5 s, 8.6 GB/s
speed=$(printf '%s\n' "$said" | awk -F', ' '/ copied, / && $(NF - 1) + 0 > 0 { printf "%d", $1 / ($(NF - 1) + 0) / 1048576 }')
if [ -z "$speed" ]; then
	echo "ERROR: dd did not say how long it took: $said"
	exit 0
fi
if [ "$speed" -lt "$least" ]; then
	echo "FAIL: ${SLURMD_NODENAME:-this node} writes $speed MiB/s, less than $least"
	exit 1
fi
echo "PASS: ${SLURMD_NODENAME:-this node} writes $speed MiB/s"
