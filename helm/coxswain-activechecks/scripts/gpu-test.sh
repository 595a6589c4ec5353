#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# gpu-test: runs a program that tests the GPUs of this node, as a Slurm job. The job fails only for what the program finds. A node without
# GPUs, and a program that is not installed, are skipped; a program that breaks off says nothing about the node.
#
# Environment:
#   TEST           command for sh; it gets PLATFORM, such as 8xH100, and GPUS, their number
#   FAIL_PATTERN   extended regular expression, in any case, of output that means FAIL
#   PLATFORMS      platforms to run on, with blanks between them; empty is all that have GPUs
set -eu

node=${SLURMD_NODENAME:-this node}
skip() {
	echo "SKIP: $*"
	exit 0
}
fail() {
	echo "FAIL: $*"
	exit 1
}

command -v nvidia-smi >/dev/null || skip "$node has no nvidia-smi"
names=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | grep . || true)
GPUS=$(printf '%s' "$names" | grep -c . || true)
given=${SLURM_GPUS_ON_NODE:-0}
[ "$GPUS" -ge "$given" ] || fail "Slurm gave the job $given GPUs of $node, and nvidia-smi shows $GPUS"
[ "$GPUS" -gt 0 ] || skip "nvidia-smi shows no GPU of $node; where Slurm confines devices, a job has to ask for GPUs (gpus.perNode)"
# One model for all, or just GPU.
model=$(printf '%s\n' "$names" | awk -F'[ _-]' '
	{ m = "GPU"; for (i = 1; i <= NF; i++) if ($i ~ /^(H100|H200|B200|B300|GB300)$/) m = $i }
	NR > 1 && m != first { mixed = 1 }
	NR == 1 { first = m }
	END { print mixed ? "GPU" : first }')
PLATFORM=${GPUS}x$model
export GPUS PLATFORM
case " ${PLATFORMS:-$PLATFORM} " in
*" $PLATFORM "*) ;;
*) skip "$node is $PLATFORM, and the test is for $PLATFORMS" ;;
esac
command -v "${TEST%% *}" >/dev/null || skip "${TEST%% *} is not installed"

status=0
output=$(sh -c "$TEST" 2>&1) || status=$?
printf '%s\n' "$output"
if printf '%s\n' "$output" | grep -Eiq -e "$FAIL_PATTERN"; then fail "$TEST on $node"; fi
if [ "$status" != 0 ]; then
	echo "ERROR: $TEST ended with $status on $node"
	exit 0
fi
echo "PASS: $TEST on $node"
