#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck wait-for-topology of Soperator's chart: waits until the jail has a topology.conf with content.

until [[ -s /mnt/jail/etc/slurm/topology.conf ]]; do sleep 5; done
