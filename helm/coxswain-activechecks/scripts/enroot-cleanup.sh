#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# enroot-cleanup: removes the containers that jobs of checks have left on this node. It runs as a Slurm job, as the user whose containers
# they are. Those of other users' jobs are removed by the epilog (cleanup_enroot of check-runner).
set -eu

if ! command -v enroot >/dev/null; then
	echo "SKIP: enroot is not installed"
	exit 0
fi
containers=$(enroot list)
for container in $containers; do
	enroot remove --force "$container"
done
# shellcheck disable=SC2086 # counted by words
set -- $containers
echo "PASS: removed $# containers"
