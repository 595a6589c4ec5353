// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonCheckFailed is the reason of the event about an ActiveCheck whose last Job has failed.
const ReasonCheckFailed = "CheckFailed"

// ReasonCheckReaction is the reason of the event about what followed from the end of a Slurm job of an ActiveCheck.
const ReasonCheckReaction = "CheckReaction"

// ActiveCheckStatus is how the last run of a check went.
type ActiveCheckStatus struct {
	StatusMetadata `json:",inline"`

	// K8sJobsStatus is the last Kubernetes Job.
	// +optional
	K8sJobsStatus *K8sJobsStatus `json:"k8sJobsStatus,omitempty"`

	// SlurmJobsStatus are the last Slurm jobs.
	// +optional
	SlurmJobsStatus *SlurmJobsStatus `json:"slurmJobsStatus,omitempty"`
}

// K8sJobsStatus is the last Kubernetes Job of a check.
type K8sJobsStatus struct {
	// LastJobName is the name of the Job.
	// +required
	LastJobName string `json:"lastJobName"`

	// LastJobStatus is how it is.
	// +required
	LastJobStatus K8sJobStatus `json:"lastJobStatus"`

	// LastJobScheduleTime is when the Job was made: by schedule, by hand, or after creation of the check.
	// +optional
	LastJobScheduleTime *metav1.Time `json:"lastJobScheduleTime,omitempty"`

	// LastJobSuccessfulTime is when a Job of the check last succeeded.
	// +optional
	LastJobSuccessfulTime *metav1.Time `json:"lastJobSuccessfulTime,omitempty"`

	// LastTransitionTime is when this status last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// K8sJobStatus is how a Kubernetes Job is.
type K8sJobStatus string

// What a Kubernetes Job can be. Unknown is a Job that was deleted before anybody saw its end.
const (
	K8sJobActive    K8sJobStatus = "Active"
	K8sJobPending   K8sJobStatus = "Pending"
	K8sJobComplete  K8sJobStatus = "Complete"
	K8sJobFailed    K8sJobStatus = "Failed"
	K8sJobSuspended K8sJobStatus = "Suspended"
	K8sJobUnknown   K8sJobStatus = "Unknown"
)

// SlurmJobsStatus are the Slurm jobs of the last run of a check.
type SlurmJobsStatus struct {
	// LastRunID is the id of the first job, or "No slurm job".
	// +optional
	LastRunID string `json:"lastRunId,omitempty"`

	// LastRunName is the name of the job, or of the Kubernetes Job if none could be submitted.
	// +optional
	LastRunName string `json:"lastRunName,omitempty"`

	// LastRunStatus is how the run went.
	// +optional
	LastRunStatus SlurmRunStatus `json:"lastRunStatus,omitempty"`

	// LastRunSubmitTime is when the first job was submitted.
	// +optional
	LastRunSubmitTime *metav1.Time `json:"lastRunSubmitTime,omitempty"`

	// LastRunFailJobsAndReasons are the jobs that failed.
	// +optional
	LastRunFailJobsAndReasons []JobAndReason `json:"lastRunFailJobsAndReasons,omitempty"`

	// LastRunErrorJobsAndReasons are the jobs that ended neither well nor failed.
	// +optional
	LastRunErrorJobsAndReasons []JobAndReason `json:"lastRunErrorJobsAndReasons,omitempty"`

	// LastRunCancelledJobs are the ids of cancelled jobs.
	// +optional
	LastRunCancelledJobs []string `json:"lastRunCancelledJobs,omitempty"`

	// LastTransitionTime is when this status last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// SlurmRunStatus is how a run of Slurm jobs went.
type SlurmRunStatus string

// How a run of Slurm jobs can go.
const (
	SlurmRunInProgress SlurmRunStatus = "InProgress"
	SlurmRunComplete   SlurmRunStatus = "Complete"
	SlurmRunFailed     SlurmRunStatus = "Failed"
	SlurmRunError      SlurmRunStatus = "Error"
	SlurmRunCancelled  SlurmRunStatus = "Cancelled"
	SlurmRunSkipped    SlurmRunStatus = "Skipped"
)

// JobAndReason is a Slurm job and why it is in its state.
type JobAndReason struct {
	// JobID is the id of the job.
	// +required
	JobID string `json:"jobID"`

	// Reason is Slurm's reason. https://slurm.schedmd.com/job_reason_codes.html
	// +required
	Reason string `json:"reason"`
}
