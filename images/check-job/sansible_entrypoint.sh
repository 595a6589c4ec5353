#!/bin/sh
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# sansible_entrypoint.sh: stands for the program of Soperator that has Ansible install packages in the jail. The jail of our image has what
# its charts need, and who wants more installs it as root of the jail, so nothing is done.
echo "nothing to install: the jail is filled by Coxswain's image populate-jail, or by you; not done is: $*"
