// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

func TestAnEditThatWaitsIsToldWithTheWayOut(t *testing.T) {
	const (
		one     = "slurm.conf keeps partitions old until no job needs them. They have State=DRAIN: new jobs are refused, existing jobs continue; squeue --all --partition=old lists the jobs, and annotation coxswain.dev/end-jobs=abc ends these jobs at once; jobs of old: 2 running (job 7 has no time limit)"
		drained = "slurm.conf keeps and drains nodes n[1-2] until no job runs on them or names them; squeue --all --nodelist=n[1-2] lists the jobs that run on them, and annotation coxswain.dev/end-jobs=abc ends these jobs at once"
		both    = "slurm.conf keeps partitions old until no job needs them. They have State=DRAIN: new jobs are refused, existing jobs continue; squeue --all --partition=old lists the jobs; " + drained + "; jobs of old: 2 running (job 7 has no time limit)"
		many    = "slurm.conf keeps partitions a, b, c, d, e and 2 more until"
	)
	waits := &metav1.Condition{Type: slinkyv1beta1.ConditionEditWaits, Message: one}
	others := &metav1.Condition{Type: slinkyv1beta1.ConditionEditWaits, Message: strings.Replace(one, "2 running", "3 running", 1)}
	older := &metav1.Condition{Type: slinkyv1beta1.ConditionEditWaits, Message: strings.Replace(one, "=abc", "=abcd", 1)}
	jobs := need.Answer{Of: map[string]need.Jobs{"old": {Running: 2, Last: "7"}}}
	tests := []struct {
		name      string
		lingering []string
		nodes     []string
		before    *metav1.Condition
		problem   error
		message   string
		dropped   bool
		event     string
	}{
		{"nothing waits", nil, nil, nil, nil, "", true, ""},
		{"the edit begins to wait", []string{"old"}, nil, nil, nil, one, false, "JobsNeedPartitions"},
		{"the edit goes on to wait, and says so once", []string{"old"}, nil, waits, nil, one, false, ""},
		{"a job ends, which is no event", []string{"old"}, nil, others, nil, one, false, ""},
		{"another edit begins to wait", []string{"old"}, nil, older, nil, one, false, "JobsNeedPartitions"},
		{"another partition waits as well", []string{"a", "b", "c", "d", "e", "f", "g"}, nil, waits, nil, many, false, "JobsNeedPartitions"},
		{"nodes wait", nil, []string{"n1", "n2"}, nil, nil, drained, false, "JobsNeedPartitions"},
		{"partitions and nodes wait", []string{"old"}, []string{"n1", "n2"}, nil, nil, both, false, "JobsNeedPartitions"},
		{"the last partition has gone", nil, nil, waits, nil, "", true, "EditDone"},
		{"with a problem nothing of the edit has been carried out", nil, nil, waits, errors.New("x"), "", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &plan{waits: slurmctld.EditWaits{Partitions: tt.lingering, Nodes: tt.nodes, Digest: "abc"}}
			p.Fail("spec", tt.problem)
			var out reconcile.Report
			editWaits(&out, p, jobs, tt.before)
			message, event := "", ""
			for _, c := range out.Conditions {
				message = c.Message
			}
			for _, e := range out.Events {
				event = e.Reason
			}
			if !strings.HasPrefix(message, tt.message) || (message == "") != (tt.message == "") || (len(out.Drop) > 0) != tt.dropped || event != tt.event {
				t.Errorf("it says %q and drops %v, with the event %q", message, out.Drop, event)
			}
		})
	}
}

func TestWhatDoesNotConfineJobsIsToldOfEachSlurmctldOfOurs(t *testing.T) {
	lacks := []string{"ConstrainCores=yes in cgroup.conf", "ConstrainDevices=yes in cgroup.conf"}
	for _, tt := range []struct {
		name     string
		external bool
		problem  error
		lacks    []string
		status   metav1.ConditionStatus
		dropped  bool
	}{
		{name: "nothing is lacking", status: metav1.ConditionTrue},
		{name: "two keys are lacking", lacks: lacks, status: metav1.ConditionFalse},
		{name: "a configuration that is refused says nothing", lacks: lacks, problem: errors.New("x")},
		{name: "of a slurmctld elsewhere nothing is known", external: true, dropped: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &slinkyv1beta1.Controller{Spec: slinkyv1beta1.ControllerSpec{External: tt.external}}
			p := &plan{unconfined: tt.lacks}
			p.Fail("spec", tt.problem)
			out := report(c, reconcile.Outcome[facts, *plan, observation]{Plan: p})
			got := meta.FindStatusCondition(out.Conditions, slinkyv1beta1.ConditionJobsConfined)
			if status := statusOf(got); status != tt.status || slices.Contains(out.Drop, slinkyv1beta1.ConditionJobsConfined) != tt.dropped {
				t.Errorf("it says %+v and drops %v", got, out.Drop)
			}
			if got != nil && len(tt.lacks) > 0 && !strings.HasSuffix(got.Message, ": "+strings.Join(tt.lacks, ", ")) {
				t.Errorf("the message is %q", got.Message)
			}
		})
	}
}

func statusOf(c *metav1.Condition) metav1.ConditionStatus {
	if c == nil {
		return ""
	}
	return c.Status
}
