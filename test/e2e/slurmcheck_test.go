// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// runsSlurmCheck runs a check as a Slurm job on each worker: all is well at first, and then one of the machines is broken.
func (s *scene) runsSlurmCheck(t *testing.T) {
	s.hasCheckUser(t)
	m := s.manifest(t, "slurmcheck.yaml")
	check, err := m.Only("ActiveCheck")
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, m)
	s.awaitSlurmRun(t, check, "each-initial-run", "Complete")

	if _, err := s.worker(t.Context(), "touch /mnt/jail/broken-big-0"); err != nil {
		t.Fatal(err)
	}
	s.startsByHand(t, check, "each-now")
	began := time.Now()
	failed := s.awaitSlurmRun(t, check, "each-now", "Failed")
	t.Logf("the run had failed after %.1f s", time.Since(began).Seconds())
	s.slurmShows(t, "scontrol show node big-0", "+DRAIN", "Reason=[hardware_problem] Failed each: job "+failed+" [slurm_job]",
		`"check":"look: Failed each: job `+failed+` [slurm_job]"`)
	s.slurmShows(t, "scontrol show node small-0", "State=IDLE+DYNAMIC_NORM ")
	s.saysOutOfService(t, "demo-big-0", slinkyv1beta1.ReasonFailedCheck)
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace), client.HasLabels{"batch.kubernetes.io/job-name"}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if name := pods.Items[i].Labels["batch.kubernetes.io/job-name"]; strings.HasPrefix(name, "each-") {
			t.Errorf("Job %s has a pod", name)
		}
	}
	if out, err := s.slurm(t.Context(), "scontrol", "update", "nodename=big-0", "state=resume"); err != nil {
		t.Fatalf("resuming big-0: %v: %s", err, out)
	}
	s.saysOutOfService(t, "demo-big-0", "")
}

// hasCheckUser makes user soperatorchecks in the jail, as the check create-user-soperatorchecks of Soperator's chart does.
func (s *scene) hasCheckUser(t *testing.T) {
	t.Helper()
	const make = `cd /mnt/jail && mkdir -p opt/soperator-home/soperatorchecks &&
		chown 3000:3000 opt/soperator-home/soperatorchecks &&
		echo soperatorchecks:x:3000: >> etc/group && echo soperatorchecks:x:3000:3000::/opt/soperator-home/soperatorchecks:/bin/bash >> etc/passwd`
	if out, err := s.worker(t.Context(), make); err != nil {
		t.Fatalf("making the user: %v: %s", err, out)
	}
	eventually(t, soon, "slurmctld to know the user", func(ctx context.Context) error {
		_, err := s.slurm(ctx, "getent", "passwd", "soperatorchecks")
		return err
	})
}

// awaitSlurmRun waits until the Slurm jobs of a Kubernetes Job have ended so, and returns the number of the first job that has failed.
func (s *scene) awaitSlurmRun(t *testing.T, check *unstructured.Unstructured, job, want string) (failed string) {
	t.Helper()
	var jobs []string
	eventually(t, 2*soon, fmt.Sprintf("Job %s of ActiveCheck %s to be %s", job, check.GetName(), want), func(ctx context.Context) error {
		live, run := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		live.SetGroupVersionKind(check.GroupVersionKind())
		run.SetAPIVersion("batch/v1")
		run.SetKind("Job")
		if err := s.Get(ctx, s.name(check.GetName()), live); err != nil {
			return err
		}
		if err := s.Get(ctx, s.name(job), run); err != nil {
			return fmt.Errorf("%w; conditions of the check: %v", err, walk.Conditions(live))
		}
		ids, _, _ := unstructured.NestedString(run.Object, "metadata", "annotations", "slurm-job-id")
		first, _, _ := unstructured.NestedString(live.Object, "status", "slurmJobsStatus", "lastRunId")
		status, _, _ := unstructured.NestedString(live.Object, "status", "slurmJobsStatus", "lastRunStatus")
		if ids == "" || !strings.HasPrefix(ids+",", first+",") || status != want {
			shown, showErr := s.slurm(ctx, "scontrol", "show", "jobs", "--oneliner")
			return errors.Join(fmt.Errorf("Job %s has Slurm jobs %q; the check shows that run %s is %q: %s", job, ids, first, status, shown), showErr)
		}
		jobs = strings.Split(ids, ",")
		failures, _, _ := unstructured.NestedSlice(live.Object, "status", "slurmJobsStatus", "lastRunFailJobsAndReasons")
		for _, f := range failures {
			failed, _, _ = unstructured.NestedString(f.(map[string]any), "jobID")
		}
		return nil
	})
	if len(jobs) != 2 {
		t.Fatalf("Job %s has Slurm jobs %q: not one for each of the two workers", job, jobs)
	}
	return failed
}
