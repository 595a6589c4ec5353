#!/usr/bin/python3
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the check of that name in Soperator's chart: passes once as much memory is available as RealMemory."""

import os
import subprocess
import sys


def memory():
    """The total and the available memory of the machine in bytes; None if free does not tell."""
    try:
        text = subprocess.run(["free", "-b"], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"), check=True).stdout
        row = next(line.split() for line in text.splitlines() if line.startswith("Mem:"))
        return int(row[1]), int(row[6])
    except (OSError, ValueError, LookupError, StopIteration, subprocess.SubprocessError):
        return None


def main():
    real, found = os.environ.get("CHECKS_NODE_REAL_MEM_BYTES", ""), memory()
    if not real.isdecimal() or int(real) == 0 or found is None or int(real) > found[0]:
        return 1
    return 0 if found[1] >= int(real) else 1


sys.exit(main())
