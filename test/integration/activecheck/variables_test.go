// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestACheckOfGPUsIsSkippedWhereNoWorkerHasAny(t *testing.T) {
	t.Parallel()
	o, _ := startSlurm(t)
	slurmCheck(o, "gpu", `suspend: false, slurmJobSpec: {eachWorkerJobs: true, sbatchScript: "#!/bin/bash\ntrue\n", jobContainer: {env: [{name: SBATCH_GPUS_PER_NODE, value: "8"}]}}`)
	slurmCheck(o, "after", `suspend: false, dependsOn: [gpu], slurmJobSpec: {sbatchScript: "#!/bin/bash\ntrue\n"}`)
	expectRun(t, o, "gpu", nebiusv1alpha1.SlurmRunSkipped, func(s *nebiusv1alpha1.SlurmJobsStatus) bool { return s.LastRunID == "No slurm job" })
	expectEnd(t, o, "gpu-initial-run", batchv1.JobComplete, "SlurmJobsSkipped")
	if reason := operator.Get[batchv1.Job](o, "gpu-initial-run").Annotations["slurm-skipped-reason"]; reason != "the job asks for GPUs, and no worker of the cluster has any" {
		t.Errorf("the reason is %q", reason)
	}
	o.Slurm.Finish(jobsOf(t, o, "after-initial-run", 1)[0])
	expectRun(t, o, "after", nebiusv1alpha1.SlurmRunComplete, nil)
}

func TestVariablesOfSlurmJobsAreReadFromSecretsAndConfigMaps(t *testing.T) {
	t.Parallel()
	o, _ := startSlurm(t)
	slurmCheck(o, "later", `suspend: false, slurmJobSpec: {sbatchScript: "#!/bin/bash\ntrue\n", jobContainer: {env: [
		{name: RESERVATION_NAME, valueFrom: {configMapKeyRef: {name: where, key: reservation}}}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: password, key: word}}}]}}`)
	message := operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, "later", ready, metav1.ConditionFalse, "KeyMissing")
	for _, want := range []string{"variable RESERVATION_NAME: ConfigMap where has no key reservation", "variable PASSWORD: Secret password has no key word"} {
		if !strings.Contains(message, want) {
			t.Errorf("it says %q, not %q", message, want)
		}
	}
	operator.Create[corev1.Secret](o, `{metadata: {name: password}, stringData: {word: secret}}`)
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: where}, data: {reservation: nowhere}}`)
	expectEnd(t, o, "later-initial-run", batchv1.JobFailed, "SlurmJobsError")
	job := operator.Get[batchv1.Job](o, "later-initial-run")
	if refused := activecheckplan.ReadRecord(job.Annotations).Refused; !strings.Contains(refused, "reservation") {
		t.Errorf("the job went to another reservation than nowhere: %q", refused)
	}
	if text := fmt.Sprint(job); strings.Contains(text, "secret}") || strings.Contains(text, "value:secret") {
		t.Errorf("the secret is in the Job: %s", text)
	}
}
