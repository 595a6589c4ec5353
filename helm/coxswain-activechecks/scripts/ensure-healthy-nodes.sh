#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# ensure-healthy-nodes: fails if any Slurm node is DOWN, DRAIN or FAIL, or has a reason. It runs as a Slurm job.
set -eu

# sinfo by itself, or its failure would be lost. A node of several partitions has several lines.
states=$(sinfo --all --noheader --Node --format='%N|%T|%E')
nodes=$(printf '%s\n' "$states" | sort -u)
bad=$(printf '%s\n' "$nodes" | awk -F'|' '
	$2 !~ /^(down|drain|fail|error|inval|unk)/ && $3 == "none" { next }
	{ node = $1; state = $2; sub(/^[^|]*\|[^|]*\|/, ""); print "FAIL: " node " is " state ": " $0 }')
if [ -n "$bad" ]; then
	printf '%s\n' "$bad"
	exit 1
fi
echo "PASS: $(printf '%s\n' "$nodes" | wc -l) nodes are healthy"
