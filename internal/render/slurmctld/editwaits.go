// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"fmt"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

// EditWaits is an edit that waits for jobs, in the words that all use: condition EditWaits, its event, the webhook and "kubectl slurm".
type EditWaits struct {
	// Partitions and Nodes are those that linger, and Digest is that of the configuration without them.
	Partitions, Nodes []string
	Digest            string
}

// maxNamed is how many partitions a message names.
const maxNamed = 5

// ends follows what waits, and jobsFollow comes between that and the jobs that it waits for.
const (
	ends       = " ends these jobs at once"
	jobsFollow = ends + "; "
)

// Any reports whether anything waits.
func (w EditWaits) Any() bool { return len(w.Partitions)+len(w.Nodes) > 0 }

// Without is the part that does not wait already.
func (w EditWaits) Without(before EditWaits) EditWaits {
	known := func(list []string) func(string) bool {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	w.Partitions = slices.DeleteFunc(slices.Clone(w.Partitions), known(before.Partitions))
	w.Nodes = slices.DeleteFunc(slices.Clone(w.Nodes), known(before.Nodes))
	return w
}

func (w EditWaits) named() []string { return w.Partitions[:min(len(w.Partitions), maxNamed)] }

// Kept returns what slurm.conf keeps, and until when.
func (w EditWaits) Kept() string {
	var kept []string
	if len(w.Partitions) > 0 {
		text := "slurm.conf keeps partitions " + strings.Join(w.named(), ", ")
		if more := len(w.Partitions) - maxNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		kept = append(kept, text+" until no job needs them. They have State=DRAIN: new jobs are refused, existing jobs continue; squeue --all --partition="+
			strings.Join(w.named(), ",")+" lists the jobs")
	}
	if len(w.Nodes) > 0 {
		names := hostlist.Compress(slices.Clone(w.Nodes))
		kept = append(kept, "slurm.conf keeps and drains nodes "+names+" until no job runs on them or names them; squeue --all --nodelist="+names+" lists the jobs that run on them")
	}
	return strings.Join(kept, "; ")
}

// Annotation is the annotation with which the jobs end at once.
func (w EditWaits) Annotation() string { return slinkyv1beta1.AnnotationEndJobs + "=" + w.Digest }

func (w EditWaits) text() string { return w.Kept() + ", and annotation " + w.Annotation() + ends }

// Message returns what waits, how to apply it at once, and for which jobs of partitions it waits.
func (w EditWaits) Message(jobs need.Answer) string {
	if len(w.Partitions) == 0 {
		return w.text()
	}
	return w.text() + "; " + jobs.Words(w.named())
}

// IsAbout reports whether a message is about this edit, whatever the jobs were.
func (w EditWaits) IsAbout(message string) bool { return strings.HasPrefix(message, w.text()) }

// JobsOf returns the part about the jobs from a message of an edit with the digest; false for a message of another one.
func JobsOf(message, digest string) (jobs string, ok bool) {
	_, jobs, ok = strings.Cut(message, EditWaits{Digest: digest}.Annotation()+jobsFollow)
	return jobs, ok
}
