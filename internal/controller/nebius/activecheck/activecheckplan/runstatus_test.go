// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func TestHowARunWent(t *testing.T) {
	for name, test := range map[string]struct {
		// ids and ended are the annotations; "-" is that the first is absent.
		ids, ended, refused, skipped string
		want                         nebiusv1alpha1.SlurmRunStatus
		// job is the end of the Kubernetes Job, with its message; empty while there is none.
		job    string
		active int32
	}{
		"the jobs of the run are being submitted":        {ids: "-", want: "InProgress"},
		"the job of the run runs":                        {ids: "17", want: "InProgress", active: 1},
		"one of three jobs has failed":                   {ids: "17,18,19", ended: "18=FAILED", want: "InProgress", active: 2},
		"the job of the run is complete":                 {ids: "17", ended: "17=COMPLETED", want: "Complete", job: "Complete SlurmJobsCompleted: Slurm job 17 is COMPLETED"},
		"one of many jobs fails":                         {ids: "17,18,19", ended: "17=COMPLETED 18=FAILED/NonZeroExitCode 19=COMPLETED", want: "Failed", job: "Failed SlurmJobsFailed: 2 Slurm jobs are COMPLETED, the first is 17; Slurm job 18 is FAILED"},
		"a failure comes before an error":                {ids: "17,18", ended: "17=NODE_FAIL 18=FAILED", want: "Failed", job: "Failed SlurmJobsFailed: Slurm job 17 is NODE_FAIL; Slurm job 18 is FAILED"},
		"a job that loses its node is an error":          {ids: "17", ended: "17=NODE_FAIL", want: "Error", job: "Failed SlurmJobsError: Slurm job 17 is NODE_FAIL"},
		"a job whose time is over is an error":           {ids: "17", ended: "17=TIMEOUT/TimeLimit", want: "Error", job: "Failed SlurmJobsError: Slurm job 17 is TIMEOUT"},
		"a job that slurmctld has forgotten is an error": {ids: "17", ended: "17=UNKNOWN/SlurmctldHasForgottenIt", want: "Error", job: "Failed SlurmJobsError: Slurm job 17 is UNKNOWN"},
		"an error comes before a cancelled job":          {ids: "17,18", ended: "17=CANCELLED 18=TIMEOUT", want: "Error", job: "Failed SlurmJobsError: Slurm job 17 is CANCELLED; Slurm job 18 is TIMEOUT"},
		"a job is cancelled":                             {ids: "17", ended: "17=CANCELLED", want: "Cancelled", job: "Failed SlurmJobsCancelled: Slurm job 17 is CANCELLED"},
		"a job is refused":                               {ids: "", refused: "no such partition", want: "Error", job: "Failed SlurmJobsError: not submitted: no such partition"},
		"a job is refused, and another one is not":       {ids: "17", ended: "17=COMPLETED", refused: "for node b: busy", want: "Error", job: "Failed SlurmJobsError: Slurm job 17 is COMPLETED; not submitted: for node b: busy"},
		"no worker is healthy":                           {ids: "", want: "Error", job: "Failed SlurmJobsError: no worker that could run the job is healthy, so that none was submitted"},
		"there was nothing to check":                     {ids: "", skipped: "no GPUs", want: "Skipped", job: "Complete SlurmJobsSkipped: nothing to check: no GPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			job := aRun(t, "")
			job.Annotations = map[string]string{AnnotationSlurmJobs: test.ids, AnnotationEnded: test.ended}
			if test.ids == "-" {
				delete(job.Annotations, AnnotationSlurmJobs)
			}
			if test.refused != "" {
				job.Annotations[AnnotationRefused] = test.refused
			}
			if test.skipped != "" {
				job.Annotations[AnnotationSkipped] = test.skipped
			}
			r := ReadRecord(job.Annotations)
			if got := result(r); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
			status, got := RunStatus(job, r, began.Add(time.Minute)), ""
			for _, c := range status.Conditions {
				if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
					got = string(c.Type) + " " + c.Reason + ": " + c.Message
				}
			}
			if got != test.job || status.Active != test.active {
				t.Errorf("the Job says %q with %d active, want %q with %d", got, status.Active, test.job, test.active)
			}
			job.Status = status
			if again := RunStatus(job, r, began.Add(time.Hour)); !cmp.Equal(status, again) {
				t.Errorf("the status changes by itself: %s", cmp.Diff(status, again))
			}
		})
	}
}

func TestTheStatusIsAboutTheLastRun(t *testing.T) {
	before := &nebiusv1alpha1.SlurmJobsStatus{
		LastRunID: "9", LastRunName: "disk", LastRunStatus: nebiusv1alpha1.SlurmRunInProgress, LastRunSubmitTime: new(metav1.NewTime(began)), LastTransitionTime: new(metav1.NewTime(began)),
	}
	run := func(name, start, ids, ended string) batchv1.Job {
		job := aRun(t, "")
		job.Name, job.Annotations = name, map[string]string{AnnotationSlurmJobs: ids, AnnotationEnded: ended}
		job.Status.StartTime = manifest.Parse[batchv1.Job](t, "{status: {startTime: "+start+"}}").Status.StartTime
		return *job
	}
	const at, later, earlier = `"2026-01-02T03:04:05Z"`, `"2026-01-02T04:04:05Z"`, `"2026-01-02T02:04:05Z"`
	notBegun := run("new", "null", "", "")
	for name, test := range map[string]struct {
		before *nebiusv1alpha1.SlurmJobsStatus
		jobs   []batchv1.Job
		// want is "id name status fails errors cancelled"; empty is no status.
		want, event string
		changed     bool
	}{
		"there was no run":                                      {},
		"a run has not begun":                                   {jobs: []batchv1.Job{notBegun}},
		"the first run has begun":                               {jobs: []batchv1.Job{run("a", at, "9,10", "")}, want: "9 disk InProgress", changed: true},
		"nothing has changed":                                   {before: before, jobs: []batchv1.Job{run("a", at, "9,10", "")}, want: "9 disk InProgress"},
		"a job has failed":                                      {before: before, jobs: []batchv1.Job{run("a", at, "9,10", "10=FAILED/NonZeroExitCode")}, want: "9 disk InProgress fail 10 NonZeroExitCode", changed: true},
		"all ends are told":                                     {before: before, jobs: []batchv1.Job{run("a", at, "9,10,11,12", "9=CANCELLED 10=FAILED 11=NODE_FAIL/None 12=COMPLETED")}, want: "9 disk Failed fail 10 FAILED error 11 NODE_FAIL cancelled 9", changed: true, event: "Job a is Failed: Slurm job 10 is FAILED; Slurm job 11 is NODE_FAIL; Slurm job 12 is COMPLETED; Slurm job 9 is CANCELLED"},
		"nothing was submitted for a run":                       {jobs: []batchv1.Job{run("a", at, "", "")}, want: "No slurm job a Error", changed: true, event: "Job a is Error: no worker that could run the job is healthy, so that none was submitted"},
		"a later run takes the place of the one before":         {before: before, jobs: []batchv1.Job{run("a", at, "9", ""), run("b", later, "20", "")}, want: "20 disk InProgress", changed: true},
		"an earlier run does not take the place of a later one": {before: before, jobs: []batchv1.Job{run("a", at, "9", ""), run("b", earlier, "5", "5=FAILED")}, want: "9 disk InProgress"},
		"the Job of a run was deleted while it ran":             {before: before, jobs: []batchv1.Job{run("b", earlier, "5", "5=FAILED")}, want: "9 disk Error", changed: true, event: "the Job of the last run was deleted while its Slurm jobs ran"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, "checkType: slurmJob")
			in.Jobs = test.jobs
			got := SlurmStatus(in, test.before, began.Add(2*time.Hour))
			if event := RunFailure(in, test.before, got); event != test.event {
				t.Errorf("event %q, want %q", event, test.event)
			}
			if got == nil {
				if test.want != "" {
					t.Errorf("no status, want %s", test.want)
				}
				return
			}
			text := got.LastRunID + " " + got.LastRunName + " " + string(got.LastRunStatus)
			for _, j := range got.LastRunFailJobsAndReasons {
				text += " fail " + j.JobID + " " + j.Reason
			}
			for _, j := range got.LastRunErrorJobsAndReasons {
				text += " error " + j.JobID + " " + j.Reason
			}
			for _, id := range got.LastRunCancelledJobs {
				text += " cancelled " + id
			}
			if text != test.want || got.LastTransitionTime.Equal(new(metav1.NewTime(began.Add(2*time.Hour)))) != test.changed {
				t.Errorf("%s, changed at %s; want %s, changed %v", text, got.LastTransitionTime, test.want, test.changed)
			}
		})
	}
}

func TestTheListsOfAStatusAreBounded(t *testing.T) {
	var ids, ended []string
	for n := range int64(5000) {
		ids, ended = append(ids, decimal(n+1)), append(ended, decimal(n+1)+"=FAILED")
	}
	in, job := input(t, "checkType: slurmJob"), aRun(t, "")
	job.Annotations = map[string]string{AnnotationSlurmJobs: strings.Join(ids, ","), AnnotationEnded: strings.Join(ended, " "), AnnotationRefused: strings.Repeat("ä", 5000)}
	in.Jobs = []batchv1.Job{*job}
	if got := len(SlurmStatus(in, nil, began).LastRunFailJobsAndReasons); got != maxListed {
		t.Errorf("%d jobs are listed", got)
	}
	if message := RunFailure(in, nil, SlurmStatus(in, nil, began)); len(message) > 1000 {
		t.Errorf("a message of %d bytes", len(message))
	}
}
