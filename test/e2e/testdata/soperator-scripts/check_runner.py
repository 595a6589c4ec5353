#!/usr/bin/python3
# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the program of Soperator's chart that runs checks: docs/contributors/predecessors/soperator-checks.md says what that does.

It is called by prolog.sh, epilog.sh and hc_program.sh, reads checks.json, and runs the checks that are for this call: first those of the
pod, then, in the jail, those that are to run there. The first that fails ends the run.
"""

import datetime
import json
import os
import subprocess
import sys
import time

DEFAULTS = {
    "name": "noname", "command": "/usr/bin/true", "platforms": ["any"], "skip_for_cpu_jobs": False,
    "skip_for_partial_gpu_jobs": False, "contexts": ["any"], "node_states": ["any"], "on_fail": "none", "on_ok": "none",
    "reason_base": "[node_problem] $name", "reason_append_details": True, "run_in_jail": False,
    "log": "slurm_scripts/$worker.$name.$context.out", "need_env": [],
}
JAIL = "/mnt/jail"
SCRIPTS = "/opt/slurm_scripts"
METADATA = "/run/soperator/node_metadata.env"
MEMORY = "SOPERATOR_NODE_REAL_MEMORY_BYTES="


class Runner:
    def __init__(self, env):
        self.env = env
        self.context = env["CHECKS_CONTEXT"]
        self.node = env["SLURMD_NODENAME"]
        self.base = env["CHECKS_OUTPUTS_BASE_DIR"]
        self.queries = {}

    def say(self, level, text):
        now = datetime.datetime.now(datetime.timezone.utc)
        print(f"[{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d} UTC] {level}: {text}", flush=True)

    def ask(self, *command):
        """The answer of a program; empty if it has none."""
        if command not in self.queries:
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=30)
                self.queries[command] = done.stdout if done.returncode == 0 else ""
            except (OSError, subprocess.SubprocessError):
                self.queries[command] = ""
        return self.queries[command]

    def record(self, kind, name, key):
        try:
            return json.loads(self.ask("scontrol", "show", kind, name, "--json"))[key][0]
        except (ValueError, LookupError, TypeError):
            return {}

    def slurm_node(self):
        return self.record("node", self.node, "nodes")

    def flags(self):
        return list(self.slurm_node().get("state", []))

    def platforms(self):
        gpus = self.ask("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").split("\n")
        gpus = [name.strip() for name in gpus if name.strip()]
        if not gpus:
            return ["CPU"]
        tags = [f"{len(gpus)}x{m}" for m in ("H100", "H200", "B200", "B300", "GB300")
                if all(name.startswith("NVIDIA " + m) for name in gpus)]
        return tags + [f"{len(gpus)}xGPU"]

    def real_memory(self):
        try:
            with open(METADATA) as file:
                for line in file:
                    value = line.strip().removeprefix(MEMORY)
                    if line.startswith(MEMORY) and value.isdecimal() and int(value) > 0:
                        return value
        except OSError:
            pass
        mib = self.slurm_node().get("real_memory")
        return str(mib << 20) if isinstance(mib, int) and mib > 0 else ""

    def allocated(self):
        job = self.record("job", self.env.get("SLURM_JOB_ID", ""), "jobs")
        try:
            for node in job["job_resources"]["nodes"]["allocation"]:
                if node["name"] == self.node:
                    return str(node["memory"]["allocated"] << 20)
        except (LookupError, TypeError):
            pass
        return ""

    def wanted(self, name):
        return {
            "CHECKS_PLATFORM_TAG": lambda: self.platforms()[0],
            "CHECKS_PLATFORM_TAGS": lambda: ",".join(self.platforms()),
            "CHECKS_NODE_STATE_FLAGS": lambda: "+".join(self.flags()),
            "CHECKS_NODE_REASON": lambda: self.slurm_node().get("reason", ""),
            "CHECKS_NODE_COMMENT": lambda: self.slurm_node().get("comment", ""),
            "CHECKS_NODE_REAL_MEM_BYTES": self.real_memory,
            "CHECKS_JOB_ALLOC_MEM_BYTES": self.allocated,
        }[name]()

    def applies(self, check):
        if "any" not in check["contexts"] and self.context not in check["contexts"]:
            return False
        gpus = [g for g in self.env.get("SLURM_JOB_GPUS", "").split(",") if g]
        if self.context in ("prolog", "epilog"):
            if check["skip_for_cpu_jobs"] and not gpus:
                return False
            if check["skip_for_partial_gpu_jobs"] and not any(tag.startswith(f"{len(gpus)}x") for tag in self.platforms()):
                return False
        if "any" not in check["platforms"] and not set(check["platforms"]) & set(self.platforms()):
            return False
        return "any" in check["node_states"] or "drain" in check["node_states"] and "DRAIN" in self.flags()

    def run(self, check, jailed):
        """Runs a check, and reports whether it passed, with its details."""
        log = check["log"]
        for key, value in (("$worker", self.node), ("$name", check["name"]), ("$context", self.context)):
            log = log.replace(key, value)
        path = os.path.join(self.base if jailed else JAIL + self.base, log)
        os.makedirs(os.path.dirname(path), mode=0o777, exist_ok=True)
        self.say("INFO", f"Running check {check['name']} ({check['command']}), logging to {path}")
        env = dict(self.env)
        env.update({name: self.wanted(name) for name in check["need_env"]})
        read, write = os.pipe()
        with open(path, "w") as out:
            process = subprocess.Popen(
                ["bash", "-l", "-c", f"exec 3>&{write} {write}>&-\n{check['command']}"], stdout=out, stderr=subprocess.STDOUT, env=env,
                pass_fds=[write], cwd=SCRIPTS if not jailed else "/")
            os.close(write)
            with os.fdopen(read) as pipe:
                details = pipe.read()
            code = process.wait()
        return code == 0, details.strip().replace("\n", "\\n")

    def update(self, *fields):
        subprocess.run(["scontrol", "update", f"NodeName={self.node}", *fields], check=False)

    def failed(self, check, details):
        self.say("ERROR" if check["on_fail"] != "none" else "INFO", f"Check {check['name']}: FAIL ({details})")
        reason = check["reason_base"].replace("$name", check["name"]).replace("$context", self.context)
        if check["reason_append_details"] and details:
            reason += ": " + details
        reason += f" [{self.context}]"
        if check["on_fail"] == "drain" and "DRAIN" not in self.flags():
            self.update("State=drain", f'Reason="{reason}"')
        if check["on_fail"] == "comment":
            self.update(f'Comment="{reason}"')

    def passed(self, check):
        self.say("INFO", f"Check {check['name']}: OK")
        if self.context != "hc_program":
            return
        base = check["reason_base"].replace("$name", check["name"]).replace("$context", self.context)
        if check["on_ok"] == "undrain" and "DRAIN" in self.flags() and self.slurm_node().get("reason", "").startswith(base):
            self.update("State=resume")
        if check["on_ok"] == "uncomment" and self.slurm_node().get("comment", "").startswith(base):
            self.update("Comment=")

    def main(self):
        began = time.monotonic()
        self.say("INFO", "Started")
        for key in sorted(self.env):
            if key.startswith(("SLURM_", "SLURMD_", "CUDA_", "CHECKS_")) or key == "PATH":
                self.say("INFO", f'Environment {key}="{self.env[key]}"')
        if self.env.get("SLURM_JOB_COMMENT") == "skip_checks":
            self.say("INFO", "Skipped all checks, as the comment of the job says")
            return 0
        with open(self.env["CHECKS_CONFIG"]) as file:
            configured = json.load(file)
        unknown = {key for check in configured for key in check} - set(DEFAULTS)
        if unknown:
            raise ValueError(f"unknown keys {sorted(unknown)}")
        checks = [DEFAULTS | check for check in configured]
        jailed = False
        for check in sorted(checks, key=lambda check: check["run_in_jail"]):  # stable
            if not self.applies(check):
                continue
            if check["run_in_jail"] and not jailed:
                os.chroot(JAIL)
                os.chdir("/")
                jailed = True
            ok, details = self.run(check, jailed)
            if not ok:
                self.failed(check, details)
                if self.context == "prolog":
                    sys.__stdout__.write(f"print node {self.node} has a problem; the job is queued again by itself\n")
                    return 1
                return 0
            self.passed(check)
        self.say("INFO", f"Finished in {time.monotonic() - began:.3f} seconds")
        return 0


def main():
    try:
        path = os.environ["CHECKS_RUNNER_OUTPUT"]
        os.makedirs(os.path.dirname(path), mode=0o777, exist_ok=True)
        sys.stdout = open(path, "w")
    except (KeyError, OSError):
        return 0
    missing = [key for key in ("SLURMD_NODENAME", "CHECKS_OUTPUTS_BASE_DIR", "CHECKS_CONTEXT", "CHECKS_CONFIG") if not os.environ.get(key)]
    if missing:
        print(f"ERROR: {missing} are not set", flush=True)
        return 0
    runner = Runner(dict(os.environ))
    try:
        return runner.main()
    except Exception as problem:  # whatever it is, the job runs
        runner.say("ERROR", repr(problem))
        return 0


if __name__ == "__main__":
    sys.exit(main())
