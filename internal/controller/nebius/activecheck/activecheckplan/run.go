// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// ManagedBy is the spec.managedBy of the Jobs of checks of type slurmJob: the Job controller of Kubernetes leaves them alone, and makes
// no pods. See KEP-4368.
const ManagedBy = "coxswain.dev/activecheck"

// Annotations of a Kubernetes Job that stands for a run of Slurm jobs.
const (
	// AnnotationSlurmJobs has the numbers of its Slurm jobs, comma separated, once all are submitted:
	// docs/contributors/predecessors/soperator-checks.md#slurm-jobs-of-checks.
	AnnotationSlurmJobs = "slurm-job-id"
	// AnnotationEnded is how Slurm jobs of the run ended whose reactions have been carried out: "17=COMPLETED
	// 18=FAILED/NonZeroExitCode".
	AnnotationEnded = "coxswain.dev/ended-slurm-jobs"
	// AnnotationRefused is Slurm's errors for jobs that it refused; absent for none.
	AnnotationRefused = "coxswain.dev/refused-slurm-jobs"
	// AnnotationSkipped is why there was nothing to check; absent where there was:
	// docs/contributors/predecessors/soperator-checks.md#slurm-jobs-of-checks.
	AnnotationSkipped = "slurm-skipped-reason"
)

// End is how a Slurm job ended.
type End struct {
	// State is its base state, such as FAILED, or unknownState. See https://slurm.schedmd.com/job_state_codes.html
	State string
	// Reason is Slurm's, such as NonZeroExitCode; it may be empty. See https://slurm.schedmd.com/job_reason_codes.html
	Reason string
}

// unknownState is the end of a job that slurmctld has forgotten before anybody saw its end.
const unknownState = "UNKNOWN"

// Forgotten returns the end of a job that slurmctld does not have any more.
func Forgotten() End { return End{State: unknownState, Reason: "SlurmctldHasForgottenIt"} }

// A Record is what the annotations of a Kubernetes Job record about its Slurm jobs.
type Record struct {
	// Submitted is true if all jobs are submitted, and IDs are their numbers, in the order of their submission.
	Submitted bool
	IDs       []string
	// Ended are the jobs that have ended, by number.
	Ended map[string]End
	// Refused is Slurm's errors for jobs that it refused; empty for none.
	Refused string
	// Skipped is why there was nothing to check; empty where there was.
	Skipped string
}

// ReadRecord reads the annotations of a Job. What is not of their form is left out, as if the operator had not written it yet.
func ReadRecord(annotations map[string]string) Record {
	out := Record{Ended: map[string]End{}, Refused: annotations[AnnotationRefused], Skipped: annotations[AnnotationSkipped]}
	var text string
	text, out.Submitted = annotations[AnnotationSlurmJobs]
	for id := range strings.SplitSeq(text, ",") {
		if id = strings.TrimSpace(id); isJobNumber(id) && !slices.Contains(out.IDs, id) {
			out.IDs = append(out.IDs, id)
		}
	}
	for entry := range strings.FieldsSeq(annotations[AnnotationEnded]) {
		id, end, _ := strings.Cut(entry, "=")
		state, reason, _ := strings.Cut(end, "/")
		if isJobNumber(id) && isWord(state) && (reason == "" || isWord(reason)) {
			out.Ended[id] = End{state, reason}
		}
	}
	return out
}

// Annotations returns the annotations that ReadRecord reads as this record.
func (r Record) Annotations() map[string]string {
	out := map[string]string{}
	if r.Submitted {
		out[AnnotationSlurmJobs] = strings.Join(r.IDs, ",")
	}
	var ended []string
	for _, id := range r.IDs {
		if end, ok := r.Ended[id]; ok {
			entry := id + "=" + word(end.State)
			if reason := word(end.Reason); reason != "" {
				entry += "/" + reason
			}
			ended = append(ended, entry)
		}
	}
	if len(ended) > 0 {
		out[AnnotationEnded] = strings.Join(ended, " ")
	}
	if r.Refused != "" {
		out[AnnotationRefused] = r.Refused
	}
	if r.Skipped != "" {
		out[AnnotationSkipped] = r.Skipped
	}
	return out
}

// Open returns the numbers of the jobs that have not ended, as far as that is recorded.
func (r Record) Open() (open []string) {
	for _, id := range r.IDs {
		if _, ended := r.Ended[id]; !ended {
			open = append(open, id)
		}
	}
	return open
}

// isJobNumber reports whether a text is the number of a job.
func isJobNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// maxWord is the length to which a state or a reason is cut.
const maxWord = 64

// word makes a text fit to be a state or a reason in an annotation: Slurm writes them as words.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		if isWordRune(r) {
			return r
		}
		return -1
	}, text)
	return text[:min(len(text), maxWord)]
}

func isWord(text string) bool { return text != "" && word(text) == text }

func isWordRune(r rune) bool {
	return r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}

// A Step is the next step of a run.
type Step string

// The steps of a run.
const (
	// StepNone: the run is over, or not ours, or suspended.
	StepNone Step = ""
	// StepBegin records the time at which the run begins. Before that nothing is submitted.
	StepBegin Step = "Begin"
	// StepWait waits until Slurm answers, or the deadline.
	StepWait Step = "Wait"
	// StepFind looks for jobs of the run that were submitted before the operator restarted.
	StepFind Step = "Find"
	// StepSubmit submits what is not submitted yet.
	StepSubmit Step = "Submit"
	// StepGiveUp stops submitting: the deadline is over.
	StepGiveUp Step = "GiveUp"
	// StepFollow waits for the ends of the jobs.
	StepFollow Step = "Follow"
)

// RunFacts are what is known of a run.
type RunFacts struct {
	Job *batchv1.Job
	Now time.Time
	// Reachable is true if Slurm answers, so that its nodes are known.
	Reachable bool
	// Known is true if this process knows every Slurm job of the run, since it has begun the run or looked for them.
	Known bool
}

// NextStep returns the next step of a run. The cases in order:
//
//	case                                            step     why
//	it is over, deleted, suspended, or not ours     none
//	all jobs are submitted                          follow
//	it has no start time                            begin    a start time found later shows that jobs may be there
//	Slurm does not answer, within the deadline      wait
//	Slurm does not answer, after it                 give up  the jobs that may be there are reported as unknown
//	the jobs that are there are not known           find     nothing is submitted twice
//	after the deadline                              give up
//	otherwise                                       submit
func NextStep(f RunFacts) Step {
	late := f.Job.Status.StartTime != nil && !f.Now.Before(LastSubmission(f.Job))
	switch {
	case !Ours(f.Job), f.Job.DeletionTimestamp != nil, Over(f.Job), f.Job.Spec.Suspend != nil && *f.Job.Spec.Suspend:
		return StepNone
	case ReadRecord(f.Job.Annotations).Submitted:
		return StepFollow
	case f.Job.Status.StartTime == nil:
		return StepBegin
	case !f.Reachable && !late:
		return StepWait
	case !f.Reachable:
		return StepGiveUp
	case !f.Known:
		return StepFind
	case late:
		return StepGiveUp
	}
	return StepSubmit
}

// LastSubmission returns the time after which no job of a run that has begun is submitted.
func LastSubmission(job *batchv1.Job) time.Time { return job.Status.StartTime.Add(deadline(job)) }

// userGrace is how long slurmctld may take to know a user whom a check before has just made: it asks for the accounts again and again.
const userGrace = 2 * time.Minute

// AwaitsUser reports whether a run, whose jobs Slurm refuses because of their user, is submitted again: slurmctld may know the user soon.
func AwaitsUser(job *batchv1.Job, now time.Time) bool {
	return now.Before(job.Status.StartTime.Add(min(userGrace, deadline(job))))
}

// Ours reports whether the operator alone writes the status of a Job.
func Ours(job *batchv1.Job) bool {
	return job.Spec.ManagedBy != nil && *job.Spec.ManagedBy == ManagedBy
}

// Over reports whether a Job has ended.
func Over(job *batchv1.Job) bool { return has(job, batchv1.JobComplete) || has(job, batchv1.JobFailed) }

// marker returns what the comment of the Slurm jobs of a run begins with, by which they are found again. The nodes that a job must have
// follow, since slurmctld shows of a pending job only where it may run. What the batch script gives as a comment comes last.
func marker(job *batchv1.Job) string { return ManagedBy + " " + string(job.UID) }

// givenComment is what stands before the comment of the batch script. No UID and no host list has it. check-runner reads what follows
// (passivecheck.Job).
const givenComment = " comment="

// commentOf returns the comment of a Slurm job of a run.
func commentOf(marker, nodes, given string) string {
	if nodes != "" {
		marker += " " + nodes
	}
	if given != "" {
		marker += givenComment + given
	}
	return marker
}

// ReadMarker reports whether a comment belongs to a Slurm job of a run, and returns the nodes that the job must have: a host list, empty if
// any will do.
func ReadMarker(job *batchv1.Job, comment string) (nodes string, ours bool) {
	rest, ours := strings.CutPrefix(comment, marker(job))
	rest, _, _ = strings.Cut(rest, givenComment)
	nodes, separated := strings.CutPrefix(rest, " ")
	return nodes, ours && (separated || rest == "")
}
