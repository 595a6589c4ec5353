// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// runsChecks lets a check of worker big-0 fail, which drains it while a job waits for it, and succeed again.
func (s *scene) runsChecks(t *testing.T) {
	first := ""
	eventually(t, soon, "a job to find its directory in memory", func(ctx context.Context) error {
		out, err := s.slurm(ctx, "srun", "--partition=second", "--immediate=5", "sh", "-c", "test -d /mnt/memory/job_$SLURM_JOB_ID && echo $SLURM_JOB_ID")
		first = strings.TrimSpace(out)
		return err
	})
	began := time.Now()
	if _, err := s.worker(t.Context(), "touch /mnt/jail/flag"); err != nil {
		t.Fatal(err)
	}
	id, err := s.slurm(t.Context(), "sbatch", "--parsable", "--partition=second", "--output=/dev/null", "--wrap=true")
	if err != nil {
		t.Fatal(err)
	}
	id = strings.TrimSpace(id)
	const reason = "Reason=[user_problem] flag: the flag is there ["
	s.slurmShows(t, "scontrol show node big-0", reason, "DRAIN")
	t.Logf("drained %.1f s after the cause", time.Since(began).Seconds())
	s.saysOutOfService(t, "demo-big-0", slinkyv1beta1.ReasonFailedCheck)
	s.slurmShows(t, "scontrol show job "+id, "JobState=PENDING")

	began = time.Now()
	if out, err := s.worker(t.Context(), "rm /mnt/jail/flag && ls /mnt/jail/mnt/memory"); err != nil || strings.Contains(out, "job_"+first) {
		t.Fatalf("taking the cause away: %v; directories of jobs that are left: %s", err, out)
	}
	s.slurmShows(t, "scontrol show node big-0", "State=IDLE+DYNAMIC_NORM ")
	t.Logf("idle %.1f s after the cause was gone", time.Since(began).Seconds())
	s.saysOutOfService(t, "demo-big-0", "")
	// Slurm lets a job that was requeued for its Prolog wait for two minutes. One whose worker was drained before its Prolog waits no longer.
	eventually(t, 2*soon, "job "+id+" to complete", func(ctx context.Context) error {
		shown, err := s.slurm(ctx, "scontrol", "show", "job", id)
		if err == nil && strings.Contains(shown, "JobState=COMPLETED") {
			return nil
		}
		_, refused := s.slurm(ctx, "scontrol", "update", "jobid="+id, "starttime=now")
		return errors.Join(errors.New(shown), err, refused)
	})
}

// slurm runs a command beside slurmctld.
func (s *scene) slurm(ctx context.Context, command ...string) (string, error) {
	return s.Exec(ctx, s.name("demo-controller-0"), "slurmctld", command...)
}

// worker runs a command as root beside the slurmd of worker big-0.
func (s *scene) worker(ctx context.Context, command string) (string, error) {
	return s.Exec(ctx, s.name("demo-big-0"), "slurmd", "sh", "-c", command)
}

// slurmShows waits until the output of a command has all these words.
func (s *scene) slurmShows(t *testing.T, command string, words ...string) {
	t.Helper()
	eventually(t, 2*soon, command+" to show "+strings.Join(words, ", "), func(ctx context.Context) error {
		out, err := s.slurm(ctx, strings.Fields(command)...)
		for _, word := range words {
			if err == nil && !strings.Contains(out, word) {
				err = errors.New(out)
			}
		}
		return err
	})
}

// runsActiveCheck looks at the first run of the manifest's ActiveCheck, and starts another as users do.
func (s *scene) runsActiveCheck(t *testing.T, m walk.Manifest) {
	check, err := m.Only("ActiveCheck")
	if err != nil {
		t.Fatal(err)
	}
	s.awaitRun(t, check, "populated-initial-run")
	s.startsByHand(t, check, "populated-now")
	s.awaitRun(t, check, "populated-now")
}

// startsByHand makes a Job of a check's CronJob.
func (s *scene) startsByHand(t *testing.T, check *unstructured.Unstructured, job string) {
	t.Helper()
	var cron batchv1.CronJob
	if err := s.Get(t.Context(), s.name(check.GetName()), &cron); err != nil {
		t.Fatal(err)
	}
	// What "kubectl create job --from=cronjob/NAME JOB" makes.
	byHand := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: job, Labels: cron.Spec.JobTemplate.Labels,
			Annotations:     map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: cron.Spec.JobTemplate.Spec,
	}
	maps.Copy(byHand.Annotations, cron.Spec.JobTemplate.Annotations)
	if err := s.Create(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
}

// awaitRun waits until the status of an ActiveCheck shows the success of a Job.
func (s *scene) awaitRun(t *testing.T, check *unstructured.Unstructured, job string) {
	t.Helper()
	eventually(t, 2*soon, "ActiveCheck "+check.GetName()+" to tell of Job "+job, func(ctx context.Context) error {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(check.GroupVersionKind())
		if err := s.Get(ctx, s.name(check.GetName()), live); err != nil {
			return err
		}
		name, _, _ := unstructured.NestedString(live.Object, "status", "k8sJobsStatus", "lastJobName")
		status, _, _ := unstructured.NestedString(live.Object, "status", "k8sJobsStatus", "lastJobStatus")
		if name != job || status != "Complete" {
			return fmt.Errorf("it tells of Job %q that it is %q: %v", name, status, walk.Conditions(live))
		}
		return nil
	})
}
