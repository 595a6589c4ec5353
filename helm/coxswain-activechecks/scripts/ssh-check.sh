#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# ssh-check: logs in to each login pod, as users do. It runs as a Slurm job in the jail, with the key of its user.
#
# Environment:
#   SLURM_CLUSTER_REF_NAME   name of the SlurmCluster
#   LOGIN_SERVICE            headless Service of the login pods; that of the SlurmCluster by default
set -eu

service=${LOGIN_SERVICE:-$SLURM_CLUSTER_REF_NAME-login-headless-svc}
addresses=$(getent ahosts "$service" | awk '{ print $1 }' | sort -u)
if [ -z "$addresses" ]; then
	echo "FAIL: Service $service has no login pod that is ready"
	exit 1
fi

status=0
for address in $addresses; do
	# The host keys are known by names, of which any without a dot will do.
	if ssh -n -o BatchMode=yes -o ConnectTimeout=10 -o HostKeyAlias=login "$address" true; then
		echo "PASS: logged in to $address"
	else
		echo "FAIL: could not log in to $address"
		status=1
	fi
done
exit "$status"
