#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck retrigger-checks of Soperator's chart: starts all checks of the cluster once more.

set -eu
kubectl get activechecks -n "$NAMESPACE" -o json |
	python3 -c 'import json, sys
for check in json.load(sys.stdin)["items"]:
    if check["spec"]["slurmClusterRefName"] == sys.argv[1] and check["spec"].get("runAfterCreation"):
        print(check["metadata"]["name"])' "$SLURM_CLUSTER_REF_NAME" |
	while read -r name; do
		kubectl create job -n "$NAMESPACE" --from="cronjob/$name" "$(printf '%.40s' "$name")-manual-$(date -u +%Y%m%d%H%M%S)"
	done
