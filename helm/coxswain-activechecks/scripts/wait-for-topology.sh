#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# wait-for-topology: waits until slurmctld has each of its nodes in the topology. It runs as a Slurm job.
#
# Environment:
#   TOPOLOGY_TRIES   how often to look, every five seconds; 60 by default
set -eu

config=$(scontrol show config)
plugin=$(printf '%s\n' "$config" | awk '$1 == "TopologyPlugin" { print $3 }')
case $plugin in
topology/tree | topology/block) ;;
*)
	echo "SKIP: TopologyPlugin is ${plugin:-not set}"
	exit 0
	;;
esac

# known: the nodes of all switches or blocks, one a line.
known() {
	scontrol show topology | tr ' ' '\n' | sed -n 's/^Nodes=//p' | while read -r list; do
		scontrol show hostnames "$list"
	done
}

tries=${TOPOLOGY_TRIES:-60}
while :; do
	known=$(known)
	if [ -z "$known" ]; then
		echo "SKIP: no switch is known, so that Slurm takes the network to be flat"
		exit 0
	fi
	nodes=$(sinfo --all --noheader --Node --format=%N)
	missing=$(printf '%s\n' "$nodes" | sort -u | grep -vxF -e "$known" || true)
	if [ -z "$missing" ]; then
		echo "PASS: every node is in the topology"
		exit 0
	fi
	tries=$((tries - 1))
	[ "$tries" -gt 0 ] || break
	sleep 5
done
# shellcheck disable=SC2086 # one line of names
echo "FAIL: nodes that are not in the topology:" $missing
exit 1
