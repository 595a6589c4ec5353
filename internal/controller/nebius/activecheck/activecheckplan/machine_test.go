// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const required = plain + ", requiredBeforeJobs: true"

var node1 = workerpod.Machine{Node: "node-1", UID: "u", System: "s"}

// onNode1 returns the Job on node-1, with a condition; empty for none.
func onNode1(kind batchv1.JobConditionType) batchv1.Job {
	var j batchv1.Job
	j.Name, j.Annotations = "disk-7bbac03e3e", map[string]string{slinkyv1beta1.AnnotationMachine: node1.String()}
	if kind != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "it ended"}}
	}
	return j
}

func TestWhatWorkersThatNeedACheckWaitFor(t *testing.T) {
	other := onNode1(batchv1.JobComplete)
	other.Annotations = map[string]string{slinkyv1beta1.AnnotationMachine: "node-1/u/other"}
	waits := Worker{Name: "w-0", Machine: node1}
	for _, test := range []struct {
		name    string
		spec    string
		workers []Worker
		jobs    []batchv1.Job
		want    string
	}{
		{name: "a check that is not required looks at no machine", spec: plain, workers: []Worker{waits}},
		{name: "one Job is made for a machine", spec: required, workers: []Worker{waits, {Name: "w-1", Machine: node1}},
			want: "make disk-7bbac03e3e; w-0: waits for Job disk-7bbac03e3e; w-1: waits for Job disk-7bbac03e3e"},
		{name: "nothing happens while nothing is known of the machine", spec: required, workers: []Worker{{Name: "w-0"}}},
		{name: "nothing happens while the Job runs", spec: required, workers: []Worker{{Name: "w-0", Machine: node1, CheckState: "waits for Job disk-7bbac03e3e"}}, jobs: []batchv1.Job{onNode1("")}},
		{name: "a Job that is complete lets its workers pass", spec: required, workers: []Worker{waits}, jobs: []batchv1.Job{onNode1(batchv1.JobComplete)}, want: "w-0: Passed node-1/u/s"},
		{name: "a worker that has passed does not wait, whatever becomes of the Job", spec: required, workers: []Worker{{Name: "w-0", Machine: node1, CheckState: "Passed node-1/u/s"}}},
		{name: "a Job that failed is told of", spec: required, workers: []Worker{waits}, jobs: []batchv1.Job{onNode1(batchv1.JobFailed)}, want: "w-0: Job disk-7bbac03e3e failed: BackoffLimitExceeded: it ended (new)"},
		{name: "a Job that failed is told of once", spec: required, workers: []Worker{{Name: "w-0", Machine: node1, CheckState: "Job disk-7bbac03e3e failed: BackoffLimitExceeded: it ended"}}, jobs: []batchv1.Job{onNode1(batchv1.JobFailed)}},
		{name: "a Job of that name about another machine does not count", spec: required, workers: []Worker{waits}, jobs: []batchv1.Job{other}, want: "make disk-7bbac03e3e; w-0: waits for Job disk-7bbac03e3e"},
		{name: "a machine that was exchanged is looked at anew", spec: required, workers: []Worker{{Name: "w-0", Machine: workerpod.Machine{Node: "node-1", UID: "u", System: "new"}, CheckState: "Passed node-1/u/s"}}, jobs: []batchv1.Job{onNode1(batchv1.JobComplete)},
			want: "make disk-42d5f3aa28; w-0: waits for Job disk-42d5f3aa28"},
		{name: "a check with mistakes keeps its workers waiting, and they say so", spec: "k8sJobSpec: {}, requiredBeforeJobs: true", workers: []Worker{waits}, want: "w-0: cannot run: spec.k8sJobSpec.jobContainer.image: must be given"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := input(t, test.spec)
			in.Workers, in.MachineJobs = test.workers, test.jobs
			out := Decide(in)
			var got []string
			for _, o := range out.Objects {
				if job, ok := o.(*batchv1.Job); ok && LooksAtMachine(job) {
					got = append(got, "make "+job.Name)
				}
			}
			for _, m := range out.Marks {
				text := fmt.Sprintf("%s: %s", m.Pod, m.CheckState)
				if m.Failed {
					text += " (new)"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "; ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheJobOfAMachine(t *testing.T) {
	in := input(t, required+`, tolerations: [{key: gpu, operator: Exists}],
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}`)
	in.Cluster = nil // which needs workers to become available
	in.Workers = []Worker{{Name: "w-0", Machine: node1}}
	golden.Check(t, "machine.yaml", manifest.YAML(t, Decide(in).Objects...))
}
