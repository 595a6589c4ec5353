#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# prepull-container-image: has pyxis import a container image, so that later jobs find it. It runs as a Slurm job.
#
# Environment:
#   CONTAINER_IMAGE   the image, as for srun --container-image
set -eu

if ! command -v enroot >/dev/null || ! srun --help | grep -q -e --container-image; then
	echo "SKIP: enroot and pyxis are not installed"
	exit 0
fi
if [ -z "${CONTAINER_IMAGE-}" ]; then
	echo "SKIP: CONTAINER_IMAGE names no image"
	exit 0
fi
srun --container-image="$CONTAINER_IMAGE" true || {
	echo "FAIL: no container runs of $CONTAINER_IMAGE"
	exit 1
}
echo "PASS: a container runs of $CONTAINER_IMAGE"
