// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/chart"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// TestTheChecksOfTheChartRunOneAfterTheOther applies everything that the chart of checks has. Each check that runs after creation gets to
// run, and the last of them is the one that waits for all others.
func TestTheChecksOfTheChartRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	o, nodes := startSlurm(t)
	text := chart.Render(t, "coxswain-activechecks", o.Namespace,
		"--set", "slurmClusterRefName=demo,gpus.enabled=true,checks.prepull-container-image.enabled=true,checks.enroot-cleanup.enabled=true")
	var all []*nebiusv1alpha1.ActiveCheck
	for _, document := range chart.Documents(text) {
		all = append(all, operator.Create[nebiusv1alpha1.ActiveCheck](o, string(document)))
	}
	const last = "ensure-healthy-nodes"
	operator.ExpectExists[batchv1.Job](o, "create-user-soperatorchecks-initial-run")
	if operator.Exists[batchv1.CronJob](o, "mem-perf") {
		t.Error("mem-perf did not wait for its user")
	}
	setJob(t, o, "create-user-soperatorchecks-initial-run", batchv1.JobComplete)

	// In an order in which none waits for a later one.
	rank := map[string]int{"wait-for-topology": -1, last: 1}
	slices.SortStableFunc(all, func(a, b *nebiusv1alpha1.ActiveCheck) int { return cmp.Compare(rank[a.Name], rank[b.Name]) })
	for _, check := range all {
		if !activecheckplan.IsSlurmJob(check) || !*check.Spec.RunAfterCreation {
			continue
		}
		jobs := 1
		if check.Spec.SlurmJobSpec.EachWorkerJobs {
			jobs = len(nodes)
		}
		apiserver.Eventually(t, func() error {
			// Those of others, too, for which this one waits.
			for id := int64(1); id <= int64(len(submissions(o))); id++ {
				o.Slurm.Finish(id)
			}
			status := operator.Get[nebiusv1alpha1.ActiveCheck](o, check.Name).Status.SlurmJobsStatus
			if status == nil || status.LastRunStatus != nebiusv1alpha1.SlurmRunComplete {
				return fmt.Errorf("%s says %+v, want Complete", check.Name, status)
			}
			return nil
		})
		if got := activecheckplan.ReadRecord(operator.Get[batchv1.Job](o, check.Name+"-initial-run").Annotations).IDs; len(got) != jobs {
			t.Errorf("the first run of %s had Slurm jobs %v, want %d", check.Name, got, jobs)
		}
	}
	for _, check := range all {
		operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, check.Name, ready, metav1.ConditionTrue, "Available")
		operator.ExpectCondition[nebiusv1alpha1.ActiveCheck](o, check.Name, nebiusv1.ConditionSpecEffective, metav1.ConditionTrue, "AllFieldsEffective")
	}
	submitted := submissions(o)
	if got := submitted[len(submitted)-1]; !strings.HasPrefix(got, last+" on ") {
		t.Errorf("the last job is %s of %v", got, submitted)
	}
	o.Settle()
	o.ExpectNoErrors()
}
