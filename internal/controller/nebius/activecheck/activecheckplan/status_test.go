// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

func fuzzed(raw []byte, into any) error { return json.Unmarshal(raw, into) }

// at returns a time, in minutes.
func at(minutes int) *metav1.Time {
	return new(metav1.NewTime(time.Date(2026, 1, 2, 3, minutes, 0, 0, time.UTC)))
}

// job returns a Job that was made at a time and has this condition; a complete one completed a minute later.
func job(name string, made int, kind batchv1.JobConditionType, active int32) batchv1.Job {
	out := batchv1.Job{Status: batchv1.JobStatus{Active: active}}
	out.Name, out.CreationTimestamp = name, *at(made)
	if kind != "" {
		out.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "R", Message: "m"}}
	}
	if kind == batchv1.JobComplete {
		out.Status.CompletionTime = at(made + 1)
	}
	return out
}

func TestWhatTheJobsOfACheckSay(t *testing.T) {
	type status = nebiusv1alpha1.K8sJobsStatus
	for name, test := range map[string]struct {
		jobs   []batchv1.Job
		cron   *metav1.Time
		before *status
		want   *status
	}{
		"there was no Job yet": {},
		"a Job was just made": {
			jobs: []batchv1.Job{job("a", 1, "", 0)},
			want: &status{LastJobName: "a", LastJobStatus: "Pending", LastJobScheduleTime: at(1), LastTransitionTime: at(30)},
		},
		"the pod of the Job runs": {
			jobs: []batchv1.Job{job("a", 1, "", 1)},
			want: &status{LastJobName: "a", LastJobStatus: "Active", LastJobScheduleTime: at(1), LastTransitionTime: at(30)},
		},
		"the Job is suspended": {
			jobs: []batchv1.Job{job("a", 1, batchv1.JobSuspended, 0)},
			want: &status{LastJobName: "a", LastJobStatus: "Suspended", LastJobScheduleTime: at(1), LastTransitionTime: at(30)},
		},
		"the Job says what nobody knows": {
			jobs: []batchv1.Job{job("a", 1, batchv1.JobFailureTarget, 0)},
			want: &status{LastJobName: "a", LastJobStatus: "Unknown", LastJobScheduleTime: at(1), LastTransitionTime: at(30)},
		},
		"the last Job counts, and the last success of any": {
			jobs: []batchv1.Job{job("b", 5, batchv1.JobFailed, 0), job("a", 1, batchv1.JobComplete, 0)},
			want: &status{LastJobName: "b", LastJobStatus: "Failed", LastJobScheduleTime: at(5), LastJobSuccessfulTime: at(2), LastTransitionTime: at(30)},
		},
		"nothing has changed": {
			jobs:   []batchv1.Job{job("a", 1, batchv1.JobComplete, 0)},
			before: &status{LastJobName: "a", LastJobStatus: "Complete", LastJobScheduleTime: at(1), LastJobSuccessfulTime: at(2), LastTransitionTime: at(3)},
			want:   &status{LastJobName: "a", LastJobStatus: "Complete", LastJobScheduleTime: at(1), LastJobSuccessfulTime: at(2), LastTransitionTime: at(3)},
		},
		"the last Job is deleted after its end": {
			jobs:   []batchv1.Job{job("a", 1, batchv1.JobComplete, 0)},
			before: &status{LastJobName: "b", LastJobStatus: "Failed", LastJobScheduleTime: at(5), LastJobSuccessfulTime: at(2), LastTransitionTime: at(6)},
			want:   &status{LastJobName: "b", LastJobStatus: "Failed", LastJobScheduleTime: at(5), LastJobSuccessfulTime: at(2), LastTransitionTime: at(6)},
		},
		"the last Job is deleted, and another Job is of the same second": {
			jobs:   []batchv1.Job{job("a", 5, batchv1.JobComplete, 0)},
			before: &status{LastJobName: "b", LastJobStatus: "Failed", LastJobScheduleTime: at(5), LastJobSuccessfulTime: at(6), LastTransitionTime: at(7)},
			want:   &status{LastJobName: "b", LastJobStatus: "Failed", LastJobScheduleTime: at(5), LastJobSuccessfulTime: at(6), LastTransitionTime: at(7)},
		},
		"the last Job is deleted before its end": {
			before: &status{LastJobName: "a", LastJobStatus: "Active", LastJobScheduleTime: at(5), LastTransitionTime: at(6)},
			want:   &status{LastJobName: "a", LastJobStatus: "Unknown", LastJobScheduleTime: at(5), LastTransitionTime: at(30)},
		},
		"the CronJob deleted the last Job when it had succeeded": {
			cron:   at(7),
			before: &status{LastJobName: "a", LastJobStatus: "Active", LastJobScheduleTime: at(5), LastTransitionTime: at(6)},
			want:   &status{LastJobName: "a", LastJobStatus: "Complete", LastJobScheduleTime: at(5), LastJobSuccessfulTime: at(7), LastTransitionTime: at(30)},
		},
		"the CronJob's last success was an earlier one": {
			cron:   at(4),
			before: &status{LastJobName: "a", LastJobStatus: "Active", LastJobScheduleTime: at(5), LastTransitionTime: at(6)},
			want:   &status{LastJobName: "a", LastJobStatus: "Unknown", LastJobScheduleTime: at(5), LastTransitionTime: at(30)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Jobs: test.jobs, CronJob: &batchv1.CronJob{Status: batchv1.CronJobStatus{LastSuccessfulTime: test.cron}}}
			before := test.before.DeepCopy()
			got := JobsStatus(in, before, at(30).Time)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.before, before); diff != "" {
				t.Errorf("the status of before was changed:\n%s", diff)
			}
		})
	}
}

func TestAFailedJobSaysWhy(t *testing.T) {
	jobs := []batchv1.Job{job("a", 1, batchv1.JobComplete, 0), job("b", 2, batchv1.JobFailed, 0)}
	if got := Failure(jobs, "b"); got != "R: m" {
		t.Errorf("b says %q", got)
	}
	if got := Failure(jobs, "a") + Failure(jobs, "c"); got != "" {
		t.Errorf("others say %q", got)
	}
}

// TestAStatusThatIsSettledStays has Jobs come, end and go: the last Job never is an older one than before, an end that was seen never
// changes, and a status that is computed twice stays the same.
func TestAStatusThatIsSettledStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, now := Input{}, 0
		var status *nebiusv1alpha1.K8sJobsStatus
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now++
			switch last := len(in.Jobs) - 1; {
			case last < 0 || rapid.Bool().Draw(t, "make"):
				in.Jobs = append(in.Jobs, job(string(rune('a'+now)), now/2, "", 0))
			case rapid.Bool().Draw(t, "delete"):
				i := rapid.IntRange(0, last).Draw(t, "which")
				in.Jobs = append(in.Jobs[:i:i], in.Jobs[i+1:]...)
			case len(in.Jobs[last].Status.Conditions) == 0:
				kind := rapid.SampledFrom([]batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}).Draw(t, "end")
				in.Jobs[last] = job(in.Jobs[last].Name, in.Jobs[last].CreationTimestamp.Minute(), kind, 0)
			}
			next := JobsStatus(in, status, at(now).Time)
			if again := JobsStatus(in, next, at(59).Time); cmp.Diff(next, again) != "" {
				t.Fatalf("it changes by itself: %s", cmp.Diff(next, again))
			}
			if status != nil && next.LastJobScheduleTime.Before(status.LastJobScheduleTime) {
				t.Fatalf("an older Job: %+v, then %+v", status, next)
			}
			if status != nil && Ended(status.LastJobStatus) && next.LastJobName == status.LastJobName && next.LastJobStatus != status.LastJobStatus {
				t.Fatalf("an end changes: %+v, then %+v", status, next)
			}
			status = next
		}
	})
}
