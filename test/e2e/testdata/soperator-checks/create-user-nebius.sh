#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck create-user-nebius of Soperator's chart: makes account USER_NAME in the jail, over ssh to a login pod.

set -eu
login=$SLURM_CLUSTER-login-0
kubectl get pod "$login" || login="login-0"
kubectl get pod "$login" >/dev/null || { echo "there is no login pod" && exit 1; }
host=$login.$SLURM_CLUSTER-login-headless-svc.$NAMESPACE.svc.cluster.local
key=/mnt/jail/opt/soperator-home/soperatorchecks/.ssh/soperatorchecks_id_ecdsa
retry -d 2 -t 10 ssh -i "$key" -o StrictHostKeyChecking=no "soperatorchecks@$host" \
	"id $USER_NAME || echo | sudo soperator-createuser $USER_NAME --gecos '' --home /opt/soperator-home/$USER_NAME"
sleep 20
