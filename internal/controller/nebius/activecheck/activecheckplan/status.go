// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// JobsStatus returns the status of the Jobs of a check: scheduled, manual and after creation alike; nil before the first. before is
// the status so far. It is kept as it is while nothing differs, and it includes Jobs that are deleted by now.
func JobsStatus(in Input, before *nebiusv1alpha1.K8sJobsStatus, now time.Time) *nebiusv1alpha1.K8sJobsStatus {
	out := &nebiusv1alpha1.K8sJobsStatus{}
	if before != nil {
		*out = *before
	}
	switch last := newest(in.Jobs); {
	case last != nil && isNext(last, before, in.Jobs):
		out.LastJobName, out.LastJobStatus = last.Name, jobStatus(last)
		out.LastJobScheduleTime = last.CreationTimestamp.DeepCopy()
	case before == nil:
		return nil
	default:
		afterDeletion(out, in.CronJob)
	}
	for i := range in.Jobs {
		if has(&in.Jobs[i], batchv1.JobComplete) {
			succeeded(out, in.Jobs[i].Status.CompletionTime)
		}
	}
	if before == nil || !same(before, out) {
		out.LastTransitionTime = new(metav1.NewTime(now.Truncate(time.Second)))
	}
	return out
}

// isNext reports whether the newest Job that is there takes the place of the one in the status. If that is deleted, an older
// one does not.
func isNext(last *batchv1.Job, before *nebiusv1alpha1.K8sJobsStatus, jobs []batchv1.Job) bool {
	return before == nil || slices.ContainsFunc(jobs, func(j batchv1.Job) bool { return j.Name == before.LastJobName }) ||
		before.LastJobScheduleTime.Before(&last.CreationTimestamp)
}

// newest returns the Job that was made last.
func newest(jobs []batchv1.Job) *batchv1.Job {
	if len(jobs) == 0 {
		return nil
	}
	last := slices.MaxFunc(jobs, func(a, b batchv1.Job) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return &last
}

// jobStatus returns how a Job is.
func jobStatus(job *batchv1.Job) nebiusv1alpha1.K8sJobStatus {
	switch {
	case has(job, batchv1.JobComplete):
		return nebiusv1alpha1.K8sJobComplete
	case has(job, batchv1.JobFailed):
		return nebiusv1alpha1.K8sJobFailed
	case has(job, batchv1.JobSuspended):
		return nebiusv1alpha1.K8sJobSuspended
	case job.Status.Active > 0:
		return nebiusv1alpha1.K8sJobActive
	case len(job.Status.Conditions) == 0:
		return nebiusv1alpha1.K8sJobPending
	}
	return nebiusv1alpha1.K8sJobUnknown
}

// afterDeletion sets how the last Job went, which is deleted. An end that was seen stays. One that was not seen is known from the
// CronJob, if the Job succeeded after it was made, or not at all.
func afterDeletion(status *nebiusv1alpha1.K8sJobsStatus, cron *batchv1.CronJob) {
	switch {
	case Ended(status.LastJobStatus):
	case cron != nil && status.LastJobScheduleTime.Before(cron.Status.LastSuccessfulTime):
		status.LastJobStatus = nebiusv1alpha1.K8sJobComplete
		succeeded(status, cron.Status.LastSuccessfulTime)
	default:
		status.LastJobStatus = nebiusv1alpha1.K8sJobUnknown
	}
}

// succeeded records when a Job succeeded, if that was later than the recorded time.
func succeeded(status *nebiusv1alpha1.K8sJobsStatus, at *metav1.Time) {
	if status.LastJobSuccessfulTime == nil || status.LastJobSuccessfulTime.Before(at) {
		status.LastJobSuccessfulTime = at.DeepCopy()
	}
}

// Ended reports whether a Job of that status is over.
func Ended(status nebiusv1alpha1.K8sJobStatus) bool {
	return status == nebiusv1alpha1.K8sJobComplete || status == nebiusv1alpha1.K8sJobFailed
}

// has reports whether a condition of a Job is True.
func has(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// same reports whether two statuses differ in nothing but the time of the last change.
func same(a, b *nebiusv1alpha1.K8sJobsStatus) bool {
	return a.LastJobName == b.LastJobName && a.LastJobStatus == b.LastJobStatus &&
		a.LastJobScheduleTime.Equal(b.LastJobScheduleTime) && a.LastJobSuccessfulTime.Equal(b.LastJobSuccessfulTime)
}

// Failure returns the message of a failed Job, for an event; empty if no Job of that name is known to have failed.
func Failure(jobs []batchv1.Job, name string) string {
	for i := range jobs {
		if jobs[i].Name == name {
			return failure(&jobs[i])
		}
	}
	return ""
}

// failure returns the message of a failed Job; empty for others.
func failure(job *batchv1.Job) string {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}
