// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// began is when the runs of tests began.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// aRun returns a Job that began, changed by what is given of it.
func aRun(t testing.TB, rest string) *batchv1.Job {
	t.Helper()
	return manifest.Parse[batchv1.Job](t, "{metadata: {name: run, namespace: slurm, uid: u, "+rest+"}, spec: {managedBy: "+ManagedBy+`, activeDeadlineSeconds: 60,
		template: {spec: {containers: [{name: disk, env: [{name: A, value: b}]}]}}}, status: {startTime: "2026-01-02T03:04:05Z"}}`)
}

func TestWhatIsDoneNextAboutARun(t *testing.T) {
	ended := func(kind string) func(*RunFacts) {
		return func(f *RunFacts) {
			f.Job.Status.Conditions = manifest.Parse[batchv1.Job](t, "{status: {conditions: [{type: "+kind+`, status: "True"}]}}`).Status.Conditions
		}
	}
	late := func(f *RunFacts) { f.Now = began.Add(time.Minute) }
	away := func(f *RunFacts) { f.Reachable = false }
	for name, test := range map[string]struct {
		change []func(*RunFacts)
		want   Step
	}{
		"jobs are missing":                                         {want: StepSubmit},
		"the run has not begun":                                    {change: []func(*RunFacts){func(f *RunFacts) { f.Job.Status.StartTime = nil }}, want: StepBegin},
		"the run begins although Slurm is away":                    {change: []func(*RunFacts){away, func(f *RunFacts) { f.Job.Status.StartTime = nil }}, want: StepBegin},
		"Slurm is away":                                            {change: []func(*RunFacts){away}, want: StepWait},
		"Slurm is away for too long":                               {change: []func(*RunFacts){away, late}, want: StepGiveUp},
		"another process may have submitted jobs":                  {change: []func(*RunFacts){func(f *RunFacts) { f.Known = false }}, want: StepFind},
		"another process's jobs are looked for after the deadline": {change: []func(*RunFacts){late, func(f *RunFacts) { f.Known = false }}, want: StepFind},
		"the deadline is over":                                     {change: []func(*RunFacts){late}, want: StepGiveUp},
		"all jobs are submitted":                                   {change: []func(*RunFacts){func(f *RunFacts) { f.Job.Annotations = map[string]string{AnnotationSlurmJobs: "17"} }, late, away}, want: StepFollow},
		"there was nothing to submit":                              {change: []func(*RunFacts){func(f *RunFacts) { f.Job.Annotations = map[string]string{AnnotationSlurmJobs: ""} }}, want: StepFollow},
		"the run is complete":                                      {change: []func(*RunFacts){ended("Complete")}},
		"the run has failed":                                       {change: []func(*RunFacts){ended("Failed")}},
		"the run is being deleted":                                 {change: []func(*RunFacts){func(f *RunFacts) { f.Job.DeletionTimestamp = f.Job.Status.StartTime }}},
		"the run is suspended":                                     {change: []func(*RunFacts){func(f *RunFacts) { f.Job.Spec.Suspend = new(true) }}},
		"the Job controller of Kubernetes has the Job":             {change: []func(*RunFacts){func(f *RunFacts) { f.Job.Spec.ManagedBy = nil }}},
		"somebody else has the Job":                                {change: []func(*RunFacts){func(f *RunFacts) { f.Job.Spec.ManagedBy = new("example.com/other") }}},
	} {
		t.Run(name, func(t *testing.T) {
			f := RunFacts{Job: aRun(t, ""), Now: began.Add(time.Minute - time.Second), Reachable: true, Known: true}
			for _, change := range test.change {
				change(&f)
			}
			if got := NextStep(f); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	words := rapid.StringMatching(`[A-Za-z_-]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		want := Record{Submitted: rapid.Bool().Draw(t, "submitted"), Ended: map[string]End{}, Refused: rapid.String().Draw(t, "refused")}
		if want.Submitted {
			for _, id := range rapid.SliceOfDistinct(rapid.Int64Range(1, 1<<40), func(n int64) int64 { return n }).Draw(t, "ids") {
				text := decimal(id)
				want.IDs = append(want.IDs, text)
				if rapid.Bool().Draw(t, "ended") {
					end := End{State: words.Draw(t, "state")}
					if rapid.Bool().Draw(t, "with a reason") {
						end.Reason = words.Draw(t, "reason")
					}
					want.Ended[text] = end
				}
			}
		}
		if diff := cmp.Diff(want, ReadRecord(want.Annotations()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
	})
}

// FuzzRecord: whatever stands in the annotations, what is read of them is written in a form that reads the same.
func FuzzRecord(f *testing.F) {
	f.Add("17, 18", "17=COMPLETED 18=FAILED/NonZeroExitCode", "no")
	f.Add(",,x,-1,017,9999999999999999999999", "17 = = /=/", "")
	f.Fuzz(func(t *testing.T, ids, ended, refused string) {
		r := ReadRecord(map[string]string{AnnotationSlurmJobs: ids, AnnotationEnded: ended, AnnotationRefused: refused})
		again := ReadRecord(r.Annotations())
		for id := range r.Ended { // ends of jobs that are no jobs of the run are dropped
			if _, kept := again.Ended[id]; !kept {
				delete(r.Ended, id)
			}
		}
		if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
		for _, id := range r.IDs {
			if strings.TrimLeft(id, "0123456789") != "" || strings.HasPrefix(id, "0") {
				t.Errorf("%q is no number of a job", id)
			}
		}
	})
}

func TestAMarkerLeadsFromASlurmJobToItsRun(t *testing.T) {
	job := aRun(t, "")
	for comment, want := range map[string]string{
		"coxswain.dev/activecheck u":                       "any node",
		"coxswain.dev/activecheck u a":                     "node a",
		"coxswain.dev/activecheck u a[1-2]":                "node a[1-2]",
		"coxswain.dev/activecheck u2":                      "none of ours",
		"coxswain.dev/activecheck u comment=skip_checks":   "any node",
		"coxswain.dev/activecheck u a comment=b comment=c": "node a",
		"coxswain.dev/activecheck u2 comment=skip_checks":  "none of ours",
		"skip_checks comment=coxswain.dev/activecheck u":   "none of ours",
		"coxswain.dev/activecheck":                         "none of ours",
		"":                                                 "none of ours",
	} {
		nodes, ours := ReadMarker(job, comment)
		got := "none of ours"
		switch {
		case ours && nodes == "":
			got = "any node"
		case ours:
			got = "node " + nodes
		}
		if got != want {
			t.Errorf("%q is %s, want %s", comment, got, want)
		}
	}
}

func TestARunAwaitsThatSlurmctldKnowsTheUser(t *testing.T) {
	for _, tt := range []struct {
		name     string
		deadline int64
		after    time.Duration
		want     bool
	}{
		{"a run waits for two minutes", 0, time.Minute, true},
		{"a run does not wait for longer", 0, 2 * time.Minute, false},
		{"a run does not wait beyond its deadline", 30, 30 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := &batchv1.Job{Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: began}}}
			if tt.deadline > 0 {
				job.Spec.ActiveDeadlineSeconds = &tt.deadline
			}
			if got := AwaitsUser(job, began.Add(tt.after)); got != tt.want {
				t.Errorf("after %s: %v", tt.after, got)
			}
		})
	}
}
