// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// Defaults of the CRD, for objects that were stored before it had them.
const (
	defaultSchedule       = "0 0 1 1 *"
	defaultDeadline       = int64(1800) // seconds
	defaultSuccessfulJobs = int32(3)
	defaultFailedJobs     = int32(16)
)

// pendingLimit is how long the pod of a run may wait for a Kubernetes node and its image, beyond the time that the run itself may take.
// The kubelet counts that from the start of the pod. A pod that never starts would hold up all later runs.
const pendingLimit = 10 * time.Minute

// cronJob returns the CronJob of a check. It is suspended while the cluster is away on purpose.
func cronJob(in Input, template corev1.PodTemplateSpec, g Gate) *batchv1.CronJob {
	check, spec := in.Check, &in.Check.Spec
	schedule := spec.Schedule
	if schedule == "" {
		schedule = defaultSchedule
	}
	out := &batchv1.CronJob{
		ObjectMeta: meta(check, check.Name),
		Spec: batchv1.CronJobSpec{
			Schedule:                   schedule,
			Suspend:                    new(g.Rests || orDefault(spec.Suspend, true)),
			ConcurrencyPolicy:          batchv1.ForbidConcurrent,
			SuccessfulJobsHistoryLimit: new(orDefault(spec.SuccessfulJobsHistoryLimit, defaultSuccessfulJobs)),
			FailedJobsHistoryLimit:     new(orDefault(spec.FailedJobsHistoryLimit, defaultFailedJobs)),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: identity(check).Labels(), Annotations: annotations(check)},
				Spec:       jobSpec(check, template),
			},
		},
	}
	if IsSlurmJob(check) {
		managed(out, in)
	}
	return out
}

// initialRun returns the Job that runs after creation.
func initialRun(in Input, template corev1.PodTemplateSpec) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta(in.Check, InitialRunName(in.Check)), Spec: jobSpec(in.Check, template)}
}

// jobSpec returns a run: one pod, which is tried once. A run of Slurm jobs has none, and its deadline is that of the submission.
func jobSpec(check *nebiusv1alpha1.ActiveCheck, template corev1.PodTemplateSpec) batchv1.JobSpec {
	deadline := orDefault(check.Spec.ActiveDeadlineSeconds, defaultDeadline)
	out := batchv1.JobSpec{Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(0)), Template: template}
	if IsSlurmJob(check) {
		out.ManagedBy, out.ActiveDeadlineSeconds = new(ManagedBy), &deadline
		return out
	}
	pending := int64(pendingLimit / time.Second)
	out.ActiveDeadlineSeconds = new(min(deadline, math.MaxInt64-pending) + pending)
	return out
}

// meta returns the metadata of an object of a check.
func meta(check *nebiusv1alpha1.ActiveCheck, name string) metav1.ObjectMeta {
	return pod.ObjectMeta(check, name, identity(check), slinkyv1beta1.Metadata{Annotations: annotations(check)})
}

// annotations say on everything of a check which check that is, as Soperator has it for pods:
// docs/contributors/predecessors/soperator-checks.md#pods-of-checks.
func annotations(check *nebiusv1alpha1.ActiveCheck) map[string]string {
	return map[string]string{nebiusv1alpha1.AnnotationActiveCheck: check.Name}
}

func orDefault[T any](value *T, fallback T) T {
	if value == nil {
		return fallback
	}
	return *value
}
