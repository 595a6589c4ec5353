// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// ActiveCheck is a check of a cluster that runs as a Kubernetes Job or as Slurm jobs: by schedule, and once after it was
// made.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="!has(self.spec.requiredBeforeJobs) || !self.spec.requiredBeforeJobs || self.metadata.name.size() <= 52",message="metadata.name of a check with requiredBeforeJobs must have at most 52 characters: an annotation of pods is made of it"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.checkType`,description="Type of the check"
// +kubebuilder:printcolumn:name="Init",type=boolean,JSONPath=`.spec.runAfterCreation`,description="Whether the check runs once after it was made"
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`,description="Whether runs by schedule are suspended"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`,description="Schedule"
// +kubebuilder:printcolumn:name="K8s Status",type=string,JSONPath=`.status.k8sJobsStatus.lastJobStatus`,description="Status of the last Kubernetes Job"
// +kubebuilder:printcolumn:name="Slurm Status",type=string,JSONPath=`.status.slurmJobsStatus.lastRunStatus`,description="Status of the last Slurm job"
// +kubebuilder:printcolumn:name="Slurm Submit Time",type=string,JSONPath=`.status.slurmJobsStatus.lastRunSubmitTime`,description="When the last Slurm job was submitted"
// +kubebuilder:printcolumn:name="Slurm ID",type=string,JSONPath=`.status.slurmJobsStatus.lastRunId`,description="Id of the last Slurm job"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ActiveCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the wanted check.
	// +optional
	Spec ActiveCheckSpec `json:"spec,omitzero"`

	// Status is how its last run went.
	// +optional
	Status ActiveCheckStatus `json:"status,omitzero"`
}

// ActiveCheckList is a list of ActiveChecks.
//
// +kubebuilder:object:root=true
type ActiveCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ActiveCheck `json:"items"`
}

// ActiveCheckSpec is the wanted check.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requiredBeforeJobs) || !self.requiredBeforeJobs || !has(self.checkType) || self.checkType != 'slurmJob'",fieldPath=".requiredBeforeJobs",message="only checks of type k8sJob can be required: the node drains until then, and no Slurm job starts there"
type ActiveCheckSpec struct {
	// SlurmClusterRefName is the SlurmCluster to check, in the same namespace.
	// +required
	SlurmClusterRefName string `json:"slurmClusterRefName"`

	// Name is the name of the container and the beginning of the names of Jobs. Default: the name of the ActiveCheck.
	// +optional
	// +kubebuilder:validation:MaxLength=51
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// CheckType is whether the check is a Kubernetes Job or a Slurm job. Default: k8sJob.
	// +optional
	// +kubebuilder:default=k8sJob
	CheckType CheckType `json:"checkType,omitempty"`

	// K8sJobSpec is the check of type k8sJob.
	// +optional
	K8sJobSpec *K8sJobSpec `json:"k8sJobSpec,omitempty"`

	// SlurmJobSpec is the check of type slurmJob.
	// +optional
	SlurmJobSpec *SlurmJobSpec `json:"slurmJobSpec,omitempty"`

	// Schedule is when the check runs, as in a CronJob. Default: 0 0 1 1 *.
	// https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax
	// +optional
	// +kubebuilder:default="0 0 1 1 *"
	Schedule string `json:"schedule,omitempty"`

	// Suspend suspends the scheduled runs. Default: true.
	// +optional
	// +kubebuilder:default=true
	Suspend *bool `json:"suspend,omitempty"`

	// RunAfterCreation runs the check once after it was made. Default: true.
	// +optional
	// +kubebuilder:default=true
	RunAfterCreation *bool `json:"runAfterCreation,omitempty"`

	// DependsOn are ActiveChecks that must be Complete before this one first runs. Those that do not run after creation
	// do not count.
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`

	// RequiredBeforeJobs lets a new worker of the cluster take jobs only once the check has passed on its machine. Only checks of
	// type k8sJob can be required. Default: false.
	// +optional
	RequiredBeforeJobs bool `json:"requiredBeforeJobs,omitempty"`

	// FailureReactions is what happens to the nodes of failed Slurm jobs. Default: nothing.
	// +optional
	FailureReactions *Reactions `json:"failureReactions,omitempty"`

	// SuccessReactions is what happens to the nodes of successful Slurm jobs. Default: nothing.
	// +optional
	SuccessReactions *Reactions `json:"successReactions,omitempty"`

	// Deprecated: use failureReactions, which wins.
	// +optional
	Reactions *Reactions `json:"reactions,omitempty"`

	// ActiveDeadlineSeconds is how long a run may take, in seconds. A pod that no Kubernetes node takes has ten minutes more. Of a
	// run of Slurm jobs it is the time in which they must be submitted. Default: 1800.
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// SuccessfulJobsHistoryLimit is how many successful Jobs are kept. Default: 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// FailedJobsHistoryLimit is how many failed Jobs are kept. Default: 16.
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// PodTemplateNameRef is the core/v1 PodTemplate that is merged over the pods. Its restartPolicy does not count: a run is one
	// try. Default: none.
	// +optional
	PodTemplateNameRef string `json:"podTemplateNameRef,omitempty"`

	// Affinity is the pods' affinity (core/v1 Affinity).
	// +optional
	Affinity *embedded.Affinity `json:"affinity,omitempty"`

	// NodeSelector are labels that the Kubernetes node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are taints that the pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// HostUsers false runs the pods in a user namespace of their own. Default: false.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`
}

// CheckType is what a check runs as.
//
// +kubebuilder:validation:Enum="";k8sJob;slurmJob
type CheckType string

// AnnotationActiveCheck on the Jobs and pods of an ActiveCheck is its name.
const AnnotationActiveCheck = "slurm.nebius.ai/activecheck"

// Types of checks.
const (
	CheckTypeK8sJob   CheckType = "k8sJob"
	CheckTypeSlurmJob CheckType = "slurmJob"
)

// K8sJobSpec is a check that is a Kubernetes Job.
type K8sJobSpec struct {
	// JobContainer is the container that checks.
	// +optional
	JobContainer CheckContainer `json:"jobContainer,omitzero"`

	// MungeContainer is the container of munged. It runs only where an image is named.
	// +optional
	MungeContainer CheckContainer `json:"mungeContainer,omitzero"`

	// ScriptRefName is the ConfigMap with a script (key script.sh) to run instead of the command.
	// +optional
	ScriptRefName string `json:"scriptRefName,omitempty"`
}

// SlurmJobSpec is a check that is one or more Slurm jobs.
type SlurmJobSpec struct {
	// JobContainer has the environment of the jobs (env, plain values). No pod is made, so nothing else of it has an effect.
	// +optional
	JobContainer CheckContainer `json:"jobContainer,omitzero"`

	// MungeContainer is the container of munged. It runs only where an image is named.
	// +optional
	MungeContainer CheckContainer `json:"mungeContainer,omitzero"`

	// SbatchScript is the batch script. See https://slurm.schedmd.com/sbatch.html
	// +optional
	SbatchScript string `json:"sbatchScript,omitempty"`

	// SbatchScriptRefName is the ConfigMap with the batch script (key sbatch.sh). It wins over sbatchScript.
	// +optional
	SbatchScriptRefName string `json:"sbatchScriptRefName,omitempty"`

	// EachWorkerJobs submits one job per healthy worker. Default: false.
	// +optional
	// +kubebuilder:default=false
	EachWorkerJobs bool `json:"eachWorkerJobs,omitempty"`

	// Deprecated: use eachWorkerJobs. One task of a job array per healthy worker. Default: false.
	// +optional
	// +kubebuilder:default=false
	EachWorkerJobArray bool `json:"eachWorkerJobArray,omitempty"`

	// MaxNumberOfJobs is the most jobs that one run submits; 0 is any number. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MaxNumberOfJobs int64 `json:"maxNumberOfJobs,omitempty"`
}

// CheckContainer is a container of a check.
type CheckContainer struct {
	// Image is the container image. The container that checks needs one.
	// +optional
	Image string `json:"image,omitempty"`

	// ImagePullPolicy controls when the image is pulled. Default: IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum="";Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are Secrets for pulling the image; they go to the pod.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Command replaces the entrypoint of the image.
	// +optional
	Command []string `json:"command,omitempty"`

	// Args replace the arguments of the image.
	// +optional
	Args []string `json:"args,omitempty"`

	// WorkingDir is the directory that the container starts in.
	// +optional
	WorkingDir string `json:"workingDir,omitempty"`

	// Env are environment variables (core/v1 EnvVar).
	// +optional
	Env []embedded.EnvVar `json:"env,omitempty"`

	// VolumeMounts are mounts of the container (core/v1 VolumeMount).
	// +optional
	VolumeMounts []embedded.VolumeMount `json:"volumeMounts,omitempty"`

	// Volumes are volumes of the pod (core/v1 Volume).
	// +optional
	Volumes []embedded.Volume `json:"volumes,omitempty"`

	// AppArmorProfile is unconfined, runtime/default or localhost/<profile>. Default: unconfined.
	// +optional
	// +kubebuilder:default=unconfined
	AppArmorProfile string `json:"appArmorProfile,omitempty"`
}
