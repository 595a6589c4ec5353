// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

// EditWaits is an edit that waits for jobs, in the words in which everybody tells of it: condition EditWaits, its event, the webhook and
// "kubectl slurm".
type EditWaits struct {
	// Partitions are those that linger, and Digest is that of the configuration without them.
	Partitions []string
	Digest     string
}

// maxNamed is how many partitions a message names.
const maxNamed = 5

// jobsFollow is between what waits and the jobs that it waits for.
const jobsFollow = " has them end at once; "

// EditWaits is what waits of the configuration.
func (out *Output) EditWaits() EditWaits {
	return EditWaits{Partitions: out.Lingering, Digest: out.WantedDigest}
}

func (w EditWaits) named() []string { return w.Partitions[:min(len(w.Partitions), maxNamed)] }

// Names are the partitions in words.
func (w EditWaits) Names() string {
	text := "partitions " + strings.Join(w.named(), ", ")
	if more := len(w.Partitions) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Annotation is what has the jobs end at once.
func (w EditWaits) Annotation() string { return slinkyv1beta1.AnnotationEndJobs + "=" + w.Digest }

func (w EditWaits) text() string {
	return fmt.Sprintf("slurm.conf keeps %s until no job needs them, with State=DRAIN: new jobs are refused, those that are there go on; squeue --all --partition=%s lists them, and annotation %s",
		w.Names(), strings.Join(w.named(), ","), w.Annotation())
}

// Message says what waits, how it can be had at once, and for which jobs it waits.
func (w EditWaits) Message(jobs need.Answer) string {
	return w.text() + jobsFollow + jobs.Words(w.named())
}

// TellsOf says whether a message is of this edit, whatever the jobs were.
func (w EditWaits) TellsOf(message string) bool {
	return strings.HasPrefix(message, w.text()+jobsFollow)
}

// JobsOf takes what is said of the jobs out of a message of an edit with the digest; false for a message of another one.
func JobsOf(message, digest string) (jobs string, ok bool) {
	_, jobs, ok = strings.Cut(message, EditWaits{Digest: digest}.Annotation()+jobsFollow)
	return jobs, ok
}
