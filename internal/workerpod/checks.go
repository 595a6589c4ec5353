// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"cmp"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Check is a check that has to pass before a worker takes jobs, and its state, in words for people.
type Check struct{ Name, State string }

// Checks are those that have not passed.
type Checks []Check

// checkNotRun is the state of a check without any result.
const checkNotRun = "has not run"

// RequiredChecks returns the names of the checks that a worker pod with these annotations needs.
func RequiredChecks(annotations map[string]string) []string {
	return strings.FieldsFunc(annotations[slinkyv1beta1.AnnotationRequiredChecks], func(r rune) bool { return r == ',' })
}

// CheckPassed reads a pod's annotation about a check: whether it has passed somewhere, and whether that was certainly on this machine.
func CheckPassed(said string, machine Machine) (passed, here bool) {
	on, passed := strings.CutPrefix(said, slinkyv1beta1.CheckPassed)
	return passed, passed && ParseMachine(on).Differs(machine) == node.No
}

// ChecksOf returns the checks for which a pod with these annotations waits on a machine: docs/decisions/051. required are those that its
// NodeSet requires now. A pod from before the NodeSet required a check does not need it.
func ChecksOf(annotations map[string]string, required []string, machine Machine) Checks {
	var out Checks
	for _, name := range RequiredChecks(annotations) {
		if !slices.Contains(required, name) {
			continue
		}
		state := annotations[slinkyv1beta1.AnnotationCheckPrefix+name]
		switch passed, here := CheckPassed(state, machine); {
		case !passed:
			out = append(out, Check{name, cmp.Or(state, checkNotRun)})
		case !here:
			out = append(out, Check{name, "has passed on another machine"})
		}
	}
	return out
}

// Names returns the names of the checks.
func (c Checks) Names() []string {
	out := make([]string, len(c))
	for i := range c {
		out[i] = c[i].Name
	}
	return out
}

// String returns the states of the checks.
func (c Checks) String() string {
	out := make([]string, len(c))
	for i := range c {
		out[i] = c[i].Name + ": " + c[i].State
	}
	return strings.Join(out, "; ")
}

// DrainReason returns the reason to drain the node of a worker that waits for checks; empty for none. Like all our reasons it names nothing
// that is particular to one worker.
func (c Checks) DrainReason() string {
	if len(c) == 0 {
		return ""
	}
	return node.ChecksReason
}
