// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package passivecheck decides which checks Slurm's Prolog, Epilog and HealthCheckProgram run on a node, and what follows. It reads the
// configuration of Soperator's passive checks (docs/contributors/predecessors/soperator-checks.md#checks-before-and-after-jobs). It does no
// input or output: package runner does.
package passivecheck

// Context is what calls the checks.
type Context string

// The contexts, as the configuration names them.
const (
	// Prolog is slurmd's, before the first step of a job on a node. A failure requeues the job.
	Prolog Context = "prolog"
	// Epilog is slurmd's, after a job.
	Epilog Context = "epilog"
	// HealthProgram is HealthCheckProgram of slurm.conf, which has no job.
	HealthProgram Context = "hc_program"
)

// ParseContext reads the name of a context.
func ParseContext(name string) (Context, bool) {
	switch c := Context(name); c {
	case Prolog, Epilog, HealthProgram:
		return c, true
	}
	return "", false
}

// Reactions to a check, on_fail and on_ok.
const (
	reactNot       = "none"
	reactDrain     = "drain"
	reactComment   = "comment"
	reactUndrain   = "undrain"
	reactUncomment = "uncomment"
)

// Values of lists.
const (
	anyValue   = "any"
	noContext  = "none"
	stateDrain = "drain"
	cpuTag     = "CPU"
)

// Variables that need_env asks for. They are computed for a check that names them, and for no other.
const (
	EnvPlatformTag    = "CHECKS_PLATFORM_TAG"
	EnvPlatformTags   = "CHECKS_PLATFORM_TAGS"
	EnvNodeStateFlags = "CHECKS_NODE_STATE_FLAGS"
	EnvNodeReason     = "CHECKS_NODE_REASON"
	EnvNodeComment    = "CHECKS_NODE_COMMENT"
	EnvNodeRealMemory = "CHECKS_NODE_REAL_MEM_BYTES"
	EnvJobAllocMemory = "CHECKS_JOB_ALLOC_MEM_BYTES"
)

// What a check has when its configuration does not set it.
const (
	defaultName       = "noname"
	defaultCommand    = "/usr/bin/true"
	defaultReasonBase = "[node_problem] " + variableName
	defaultLog        = "slurm_scripts/" + variableWorker + "." + variableName + "." + variableContext + ".out"
)

// What reason_base and log may hold for a name that is put there.
const (
	variableName    = "$name"
	variableContext = "$context"
	variableWorker  = "$worker"
)

// Check is one entry of the configuration. Fields are named as there.
type Check struct {
	// Name is for people and for files; several checks may have the same.
	Name string `json:"name"`
	// Command is run by bash. It excludes Builtin.
	Command string `json:"command"`
	// Builtin names a check of the program itself, which runs without bash. Soperator's configuration has no such field.
	Builtin string `json:"builtin"`
	// Platforms are the platforms, one of which the node must have: any, CPU, 8xGPU, 8xH100.
	Platforms []string `json:"platforms"`
	// SkipForCPUJobs leaves out jobs without GPUs; SkipForPartialGPUJobs those that do not have all GPUs of the node.
	SkipForCPUJobs        bool `json:"skip_for_cpu_jobs"`
	SkipForPartialGPUJobs bool `json:"skip_for_partial_gpu_jobs"`
	// Contexts are those in which the check runs: any, none, or names of contexts.
	Contexts []string `json:"contexts"`
	// NodeStates are any or drain: the check runs on drained nodes alone.
	NodeStates []string `json:"node_states"`
	// OnFail is none, drain or comment; OnOK is none, undrain or uncomment.
	OnFail string `json:"on_fail"`
	OnOK   string `json:"on_ok"`
	// ReasonBase begins the reason of a drain, and ReasonAppendDetails is whether what the check found follows.
	ReasonBase          string `json:"reason_base"`
	ReasonAppendDetails bool   `json:"reason_append_details"`
	// RunInJail has the command run with the jail as its root directory, after all checks that do not.
	RunInJail bool `json:"run_in_jail"`
	// Log is the file for the check's output, below the directory for outputs.
	Log string `json:"log"`
	// NeedEnv are the variables that the command reads.
	NeedEnv []string `json:"need_env"`
}

// Order returns the order in which checks run: those of the host first, each group as it is in the configuration.
func Order(checks []Check) []Check {
	var host, jailed []Check
	for _, c := range checks {
		if c.RunInJail {
			jailed = append(jailed, c)
		} else {
			host = append(host, c)
		}
	}
	return append(host, jailed...)
}
