#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the check of that name in Soperator's chart: fails where the disk of / is used by more than 80 percent.
set -u

used=$(/bin/df --output=pcent / | awk 'NR == 2 {print $1 + 0}') || exit 0
[[ $used =~ ^[0-9]+$ ]] && ((used > 80)) || exit 0
echo "the disk is used by $used %; see /opt/soperator_utils/fs_usage.sh" >&3
exit 1
