// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/perkey"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// memory is what this process knows about runs whose Slurm jobs are being submitted. A process that does not know a run searches Slurm for
// its jobs before it submits any.
type memory struct {
	checks perkey.Memory[types.NamespacedName, remembered]
}

// remembered is what is known about one check.
type remembered struct {
	origin
	runs map[types.UID]submission
}

// origin identifies a check and the cluster of its jobs. What is known about a check holds for no other origin.
type origin struct {
	// check is the UID of the check, since another one may get its name.
	check types.UID
	// cluster is the Slurm cluster of its jobs.
	cluster slurmcache.Key
}

// submission is what is known about the submission of one run.
type submission struct {
	// jobs are those that exist.
	jobs []activecheckplan.SubmittedJob
	// refused is Slurm's message when it refused a job; empty for none.
	refused string
	// failed are the Slurm nodes on which its jobs have failed, and which were to be drained for that.
	failed []string
}

// enter begins to remember a check. It returns false and changes nothing while another origin is remembered under the name.
func (m *memory) enter(check types.NamespacedName, from origin) (entered bool) {
	m.checks.Change(check, func(c *remembered) bool {
		if c.runs == nil {
			*c = remembered{origin: from, runs: map[types.UID]submission{}}
		}
		entered = c.origin == from
		return true
	})
	return entered
}

// drop drops a check, and returns its origin if it was known.
func (m *memory) drop(check types.NamespacedName) (from origin, known bool) {
	m.checks.Change(check, func(c *remembered) bool {
		from, known = c.origin, c.runs != nil
		return false
	})
	return from, known
}

// get returns what is known about a run, if anything.
func (m *memory) get(check types.NamespacedName, job types.UID) (known submission, ok bool) {
	m.change(check, func(runs map[types.UID]submission) {
		known, ok = runs[job]
		known.jobs, known.failed = slices.Clone(known.jobs), slices.Clone(known.failed)
	})
	return known, ok
}

// put notes what is known about a run of a check that is remembered.
func (m *memory) put(check types.NamespacedName, job types.UID, known submission) {
	m.change(check, func(runs map[types.UID]submission) { runs[job] = known })
}

// forget drops what is known about a run. Its jobs have to be searched for after that.
func (m *memory) forget(check types.NamespacedName, job types.UID) {
	m.change(check, func(runs map[types.UID]submission) { delete(runs, job) })
}

// keep drops all other runs of a check.
func (m *memory) keep(check types.NamespacedName, jobs map[types.UID]bool) {
	m.change(check, func(runs map[types.UID]submission) {
		maps.DeleteFunc(runs, func(uid types.UID, _ submission) bool { return !jobs[uid] })
	})
}

// change calls a function with the runs of a check, if that is remembered.
func (m *memory) change(check types.NamespacedName, change func(runs map[types.UID]submission)) {
	m.checks.Change(check, func(c *remembered) bool {
		if c.runs != nil {
			change(c.runs)
		}
		return c.runs != nil
	})
}
