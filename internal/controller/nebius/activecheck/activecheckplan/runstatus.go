// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// noSlurmJob is the lastRunId of a run that has no Slurm job: docs/contributors/predecessors/soperator-checks.md#results-of-checks.
const noSlurmJob = "No slurm job"

// Limits of the lists of a status, and of a message in it.
const (
	maxListed  = 100
	maxMessage = 512
)

// result returns the state of a run from its record. The cases in order:
//
//	case                                           result
//	not all jobs are submitted, or have ended      InProgress
//	a job has failed                               Failed
//	a job has ended in another way, or is refused  Error
//	a job was cancelled                            Cancelled
//	there was nothing to check                     Skipped
//	there is no job                                Error: no worker is healthy
//	otherwise                                      Complete
func result(r Record) nebiusv1alpha1.SlurmRunStatus {
	if !r.Submitted || len(r.Open()) > 0 {
		return nebiusv1alpha1.SlurmRunInProgress
	}
	ended := map[nebiusv1alpha1.SlurmRunStatus]bool{}
	for _, id := range r.IDs {
		ended[endOf(r.Ended[id])] = true
	}
	switch {
	case ended[nebiusv1alpha1.SlurmRunFailed]:
		return nebiusv1alpha1.SlurmRunFailed
	case ended[nebiusv1alpha1.SlurmRunError], r.Refused != "":
		return nebiusv1alpha1.SlurmRunError
	case ended[nebiusv1alpha1.SlurmRunCancelled]:
		return nebiusv1alpha1.SlurmRunCancelled
	case len(r.IDs) == 0 && r.Skipped != "":
		return nebiusv1alpha1.SlurmRunSkipped
	case len(r.IDs) == 0:
		return nebiusv1alpha1.SlurmRunError
	}
	return nebiusv1alpha1.SlurmRunComplete
}

// endOf returns what the end of one job means. One whose node died, or whose time was over, proves nothing about what was checked.
func endOf(end End) nebiusv1alpha1.SlurmRunStatus {
	switch end.State {
	case "COMPLETED":
		return nebiusv1alpha1.SlurmRunComplete
	case "FAILED":
		return nebiusv1alpha1.SlurmRunFailed
	case "CANCELLED":
		return nebiusv1alpha1.SlurmRunCancelled
	}
	return nebiusv1alpha1.SlurmRunError
}

// RunStatus returns the status of the Kubernetes Job of a run. The Job stands for one thing that succeeds or fails, whatever the number of
// its Slurm jobs; active is the number of those that have not ended. Once it has ended it stays.
func RunStatus(job *batchv1.Job, r Record, now time.Time) batchv1.JobStatus {
	out := *job.Status.DeepCopy()
	if Over(job) {
		return out
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	if out.StartTime == nil {
		out.StartTime = &at
	}
	if at.Before(out.StartTime) { // the API server refuses an end before the begin
		at = *out.StartTime
	}
	out.Active = int32(min(len(r.Open()), maxActive))
	conclude := func(criterion, kind batchv1.JobConditionType, reason, message string) {
		for _, t := range []batchv1.JobConditionType{criterion, kind} {
			out.Conditions = append(out.Conditions, batchv1.JobCondition{
				Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at,
			})
		}
	}
	switch how := result(r); how {
	case nebiusv1alpha1.SlurmRunInProgress:
	case nebiusv1alpha1.SlurmRunComplete:
		out.Succeeded, out.CompletionTime = 1, &at
		conclude(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, "SlurmJobsCompleted", summary(r))
	case nebiusv1alpha1.SlurmRunSkipped:
		out.Succeeded, out.CompletionTime = 1, &at
		conclude(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, "SlurmJobsSkipped", summary(r))
	default:
		out.Failed = 1
		conclude(batchv1.JobFailureTarget, batchv1.JobFailed, "SlurmJobs"+string(how), summary(r))
	}
	return out
}

// maxActive bounds the number of jobs in the status of a Job.
const maxActive = 1 << 20

// summary returns in one line how the jobs of a run have ended.
func summary(r Record) string {
	counts, first := map[string]int{}, map[string]string{}
	for _, id := range r.IDs {
		state := r.Ended[id].State
		if counts[state]++; first[state] == "" {
			first[state] = id
		}
	}
	var parts []string
	for state, n := range counts {
		if n == 1 {
			parts = append(parts, fmt.Sprintf("Slurm job %s is %s", first[state], state))
		} else {
			parts = append(parts, fmt.Sprintf("%d Slurm jobs are %s, the first is %s", n, state, first[state]))
		}
	}
	slices.Sort(parts)
	switch {
	case r.Refused != "":
		parts = append(parts, "not submitted: "+r.Refused)
	case r.Skipped != "":
		parts = append(parts, "nothing to check: "+r.Skipped)
	case len(r.IDs) == 0:
		parts = append(parts, "no worker that could run the job is healthy, so that none was submitted")
	}
	return cut(strings.Join(parts, "; "))
}

// cut shortens a message for an annotation or a status, and makes one line of it.
func cut(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-len(" …")], "") + " …"
}

// SlurmStatus returns the status of the runs of a check: scheduled, manual and after creation alike; nil before the first. before is
// the status so far. It is kept as it is while nothing differs, and it includes runs whose Jobs are deleted by now.
func SlurmStatus(in Input, before *nebiusv1alpha1.SlurmJobsStatus, now time.Time) *nebiusv1alpha1.SlurmJobsStatus {
	out := &nebiusv1alpha1.SlurmJobsStatus{}
	if before != nil {
		out = before.DeepCopy()
	}
	switch last := newestRun(in.Jobs); {
	case last != nil && (before == nil || !earlier(last.Status.StartTime, firstJob(last), before.LastRunSubmitTime, before.LastRunID)):
		*out = ofRun(in.Check, last)
	case before == nil:
		return nil
	case before.LastRunStatus == nebiusv1alpha1.SlurmRunInProgress: // its Job is deleted, and nobody follows the jobs
		out.LastRunStatus = nebiusv1alpha1.SlurmRunError
	}
	if before != nil {
		out.LastTransitionTime = before.LastTransitionTime
	}
	if before == nil || !sameRun(before, out) {
		out.LastTransitionTime = new(metav1.NewTime(now.Truncate(time.Second)))
	}
	return out
}

// newestRun returns the Job of the run that began last; nil if none has begun.
func newestRun(jobs []batchv1.Job) (last *batchv1.Job) {
	for i := range jobs {
		j := &jobs[i]
		if !Ours(j) || j.Status.StartTime == nil {
			continue
		}
		isNew := last != nil && last.Status.StartTime.Equal(j.Status.StartTime) && firstJob(j) == ""
		if last == nil || isNew || earlier(last.Status.StartTime, firstJob(last), j.Status.StartTime, firstJob(j)) {
			last = j
		}
	}
	return last
}

// earlier reports whether a run, with a begin and a first Slurm job, is earlier than another one. Times are in seconds, in which several
// runs may begin. Then the run with the lower number is earlier, if both have one.
func earlier(at *metav1.Time, first string, than *metav1.Time, thanFirst string) bool {
	if !at.Equal(than) {
		return at.Before(than)
	}
	number, err := strconv.ParseInt(first, 10, 64)
	thanNumber, thanErr := strconv.ParseInt(thanFirst, 10, 64)
	return err == nil && thanErr == nil && number < thanNumber
}

// firstJob returns the number of the first Slurm job of a run; empty for none.
func firstJob(job *batchv1.Job) string {
	if ids := ReadRecord(job.Annotations).IDs; len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// ofRun returns what a status shows of a run.
func ofRun(check *nebiusv1alpha1.ActiveCheck, job *batchv1.Job) nebiusv1alpha1.SlurmJobsStatus {
	r := ReadRecord(job.Annotations)
	out := nebiusv1alpha1.SlurmJobsStatus{LastRunName: name(check), LastRunStatus: result(r), LastRunSubmitTime: job.Status.StartTime.DeepCopy()}
	switch {
	case len(r.IDs) > 0:
		out.LastRunID = r.IDs[0]
	case r.Submitted:
		out.LastRunID, out.LastRunName = noSlurmJob, job.Name
	}
	for _, id := range r.IDs {
		end, ended := r.Ended[id]
		reason := end.State
		if end.Reason != "" && end.Reason != "None" {
			reason = end.Reason
		}
		switch how := endOf(end); {
		case !ended:
		case how == nebiusv1alpha1.SlurmRunFailed:
			out.LastRunFailJobsAndReasons = append(out.LastRunFailJobsAndReasons, nebiusv1alpha1.JobAndReason{JobID: id, Reason: reason})
		case how == nebiusv1alpha1.SlurmRunError:
			out.LastRunErrorJobsAndReasons = append(out.LastRunErrorJobsAndReasons, nebiusv1alpha1.JobAndReason{JobID: id, Reason: reason})
		case how == nebiusv1alpha1.SlurmRunCancelled:
			out.LastRunCancelledJobs = append(out.LastRunCancelledJobs, id)
		}
	}
	out.LastRunFailJobsAndReasons = atMost(out.LastRunFailJobsAndReasons)
	out.LastRunErrorJobsAndReasons = atMost(out.LastRunErrorJobsAndReasons)
	out.LastRunCancelledJobs = atMost(out.LastRunCancelledJobs)
	return out
}

// atMost bounds a list of a status.
func atMost[T any](list []T) []T { return list[:min(len(list), maxListed):min(len(list), maxListed)] }

// sameRun reports whether two statuses differ in nothing but the time of the last change.
func sameRun(a, b *nebiusv1alpha1.SlurmJobsStatus) bool {
	return a.LastRunID == b.LastRunID && a.LastRunName == b.LastRunName && a.LastRunStatus == b.LastRunStatus &&
		a.LastRunSubmitTime.Equal(b.LastRunSubmitTime) && slices.Equal(a.LastRunFailJobsAndReasons, b.LastRunFailJobsAndReasons) &&
		slices.Equal(a.LastRunErrorJobsAndReasons, b.LastRunErrorJobsAndReasons) && slices.Equal(a.LastRunCancelledJobs, b.LastRunCancelledJobs)
}

// RunFailure returns how the last run of a check went wrong, if the status did not show it before; empty otherwise.
func RunFailure(in Input, before, after *nebiusv1alpha1.SlurmJobsStatus) string {
	if after == nil || before != nil && before.LastRunStatus == after.LastRunStatus && before.LastRunSubmitTime.Equal(after.LastRunSubmitTime) {
		return ""
	}
	last := newestRun(in.Jobs)
	switch after.LastRunStatus {
	case nebiusv1alpha1.SlurmRunFailed, nebiusv1alpha1.SlurmRunError:
	default:
		return ""
	}
	if last == nil || !last.Status.StartTime.Equal(after.LastRunSubmitTime) {
		return "the Job of the last run was deleted while its Slurm jobs ran"
	}
	return "Job " + last.Name + " is " + string(after.LastRunStatus) + ": " + summary(ReadRecord(last.Annotations))
}
