// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

func TestAnEditThatWaitsIsToldWithTheWayOut(t *testing.T) {
	const (
		one  = "slurm.conf keeps partitions old until no job needs them, with State=DRAIN: new jobs are refused, those that are there go on; squeue --all --partition=old lists them, and annotation coxswain.dev/end-jobs=abc has them end at once"
		many = "slurm.conf keeps partitions a, b, c, d, e and 2 more until"
	)
	waits := &metav1.Condition{Type: slinkyv1beta1.ConditionEditWaits, Message: one}
	tests := []struct {
		name      string
		lingering []string
		before    *metav1.Condition
		problem   error
		message   string
		dropped   bool
		event     string
	}{
		{"nothing waits", nil, nil, nil, "", true, ""},
		{"it begins to wait", []string{"old"}, nil, nil, one, false, "JobsNeedPartitions"},
		{"it goes on to wait, and says so once", []string{"old"}, waits, nil, one, false, ""},
		{"another partition waits as well", []string{"a", "b", "c", "d", "e", "f", "g"}, waits, nil, many, false, "JobsNeedPartitions"},
		{"the last partition has gone", nil, waits, nil, "", true, "EditDone"},
		{"with a problem nothing of the edit has been carried out", nil, waits, errors.New("x"), "", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &plan{lingering: tt.lingering, wantedDigest: "abc"}
			p.Fail("spec", tt.problem)
			var out reconcile.Report
			editWaits(&out, p, tt.before)
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
