#!/bin/bash
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Stands in for the script of ActiveCheck nccl-profiles-cleaner of Soperator's chart: removes directories of jobs without changes for three hours.

find "/mnt/jail$SNCCLPRECON_DUMP_DIR" -mindepth 1 -maxdepth 1 -type d -empty -mmin +180 -delete
