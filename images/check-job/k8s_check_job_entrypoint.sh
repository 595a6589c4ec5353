#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# k8s_check_job_entrypoint.sh: runs a check of type k8sJob that names no command, only arguments.
exec "$@"
