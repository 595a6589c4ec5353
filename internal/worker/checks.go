// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Check is a check that has to pass before a worker takes jobs, and how it is, in words for people.
type Check struct{ Name, State string }

// Checks are those that have not passed.
type Checks []Check

// checkNotRun is said of a check of which nobody has said anything.
const checkNotRun = "has not run"

// RequiredChecks are the names of the checks that a worker pod with these annotations needs.
func RequiredChecks(annotations map[string]string) []string {
	return strings.FieldsFunc(annotations[slinkyv1beta1.AnnotationRequiredChecks], func(r rune) bool { return r == ',' })
}

// CheckPassed reads what a pod says of a check: whether it has passed somewhere, and whether that was certainly on this machine.
func CheckPassed(said string, machine Machine) (passed, here bool) {
	on, passed := strings.CutPrefix(said, slinkyv1beta1.CheckPassed)
	return passed, passed && ParseMachine(on).Differs(machine) == node.No
}

// ChecksOf are the checks for which a pod with these annotations waits on a machine: docs/decisions/051. required are those that its NodeSet
// requires now. A pod from before the NodeSet required a check does not need it.
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

// Names are the names of the checks.
func (c Checks) Names() []string {
	out := make([]string, len(c))
	for i := range c {
		out[i] = c[i].Name
	}
	return out
}

// String says how the checks are.
func (c Checks) String() string {
	out := make([]string, len(c))
	for i := range c {
		out[i] = c[i].Name + ": " + c[i].State
	}
	return strings.Join(out, "; ")
}

// DrainReason is the reason with which the node of a worker drains that waits for checks; empty for none. Like all of ours it names nothing
// of the one worker.
func (c Checks) DrainReason() string {
	if len(c) == 0 {
		return ""
	}
	return node.ChecksReason
}
