#!/usr/bin/python3
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the check of that name in Soperator's chart: fails where an idle node has less memory available than its RealMemory."""

import json
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
    try:
        answer = subprocess.run(["scontrol", "listjobs", "--json"], capture_output=True, text=True, check=True).stdout
        if json.loads(answer)["jobs"]:
            return 0  # the node is busy
    except (OSError, ValueError, LookupError, subprocess.SubprocessError) as problem:
        print("skipped: scontrol listjobs:", repr(problem))
        return 0
    real = os.environ.get("CHECKS_NODE_REAL_MEM_BYTES", "")
    if not real.isdecimal() or int(real) == 0:
        print("skipped: no RealMemory")
        return 0
    found = memory()
    if found is None:
        print("skipped: free says nothing")
        return 0
    total, available = found
    print(f"RealMemory {real}, total {total}, available {available}")
    if int(real) > total:
        print("skipped: the machine has less than RealMemory")
        return 0
    if available >= int(real):
        return 0
    text = f"{available / 1e9:.2f} GB of {int(real) / 1e9:.2f} GB are available: end what is left of jobs, or reboot the node"
    os.write(3, text.encode())
    return 1


sys.exit(main())
