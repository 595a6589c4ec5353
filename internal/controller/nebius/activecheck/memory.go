// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	checks "github.com/coxswain-hpc/coxswain/internal/activecheck"
)

// memory is what this process knows of runs whose Slurm jobs are being submitted. A process that does not know a run looks for its jobs
// in Slurm before it submits any.
type memory struct {
	mu   sync.Mutex
	runs map[types.NamespacedName]map[types.UID]submission
}

// submission is what is known of the submission of one run.
type submission struct {
	// jobs are those that are there.
	jobs []checks.SubmittedJob
	// refused is what Slurm said against a job; empty for none.
	refused string
	// failed are the Slurm nodes on which its jobs have failed, and which were to be drained for that.
	failed []string
}

// get returns what is known of a run, if anything is.
func (m *memory) get(check types.NamespacedName, job types.UID) (submission, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.runs[check][job]
	known.jobs, known.failed = slices.Clone(known.jobs), slices.Clone(known.failed)
	return known, ok
}

// put notes what is known of a run.
func (m *memory) put(check types.NamespacedName, job types.UID, known submission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs == nil {
		m.runs = map[types.NamespacedName]map[types.UID]submission{}
	}
	if m.runs[check] == nil {
		m.runs[check] = map[types.UID]submission{}
	}
	m.runs[check][job] = known
}

// forget drops what is known of a run, whose jobs have to be looked for.
func (m *memory) forget(check types.NamespacedName, job types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs[check], job)
}

// keep drops all runs of a check but these.
func (m *memory) keep(check types.NamespacedName, jobs map[types.UID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.runs[check], func(uid types.UID, _ submission) bool { return !jobs[uid] })
	if len(m.runs[check]) == 0 {
		delete(m.runs, check)
	}
}
