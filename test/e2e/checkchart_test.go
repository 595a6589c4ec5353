// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runsChartOfChecks installs the chart of checks, and waits for the last of those that run after their creation.
func (s *scene) runsChartOfChecks(t *testing.T) {
	needsTime(t)
	t.Cleanup(func() { _ = s.helm(context.WithoutCancel(t.Context()), s.namespace, "uninstall", "checks") })
	// There are no login pods here.
	err := s.helm(t.Context(), s.namespace, "install", "checks", stage.repository.Path("helm", "coxswain-activechecks"),
		"--set", "slurmClusterRefName=demo,jail.claimName=jail,checks.ssh-check.enabled=false,gpus.enabled=true",
		"--set", "image.repository="+stage.images.Registry+"/populate-jail,image.tag="+stage.images.Tag)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, 2*patient, "all checks of the chart to be Complete", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("slurm.nebius.ai/v1alpha1")
		list.SetKind("ActiveCheckList")
		if err := s.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		var errs []error
		last := ""
		for i := range list.Items {
			u := &list.Items[i]
			if u.GetLabels()["app.kubernetes.io/instance"] != "checks" {
				continue
			}
			slurm, _, _ := unstructured.NestedString(u.Object, "status", "slurmJobsStatus", "lastRunStatus")
			if u.GetName() == "ensure-healthy-nodes" {
				last = slurm
			}
			if slurm == "Failed" || slurm == "Error" {
				errs = append(errs, fmt.Errorf("%s: %v", u.GetName(), u.Object["status"]))
			}
		}
		if last != "Complete" {
			errs = append(errs, fmt.Errorf("ensure-healthy-nodes is %q", last))
		}
		return errors.Join(errs...)
	})
	t.Logf("all were Complete after %.0f s", time.Since(began).Seconds())
	if out, err := s.worker(t.Context(), "cat /mnt/jail/opt/soperator-outputs/local/slurm_jobs/*.out"); err != nil {
		t.Error(err)
	} else {
		t.Log(out)
	}
}
