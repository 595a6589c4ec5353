// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestWhatSlurmSaidLastStaysWhileItSaysNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, reason string
		known        node.Answer
		terminating  bool
		want         bool
	}{
		{"after a start of the operator", slinkyv1beta1.ReasonRecordOutdated, node.Unknown, false, true},
		{"Slurm says that all is well", slinkyv1beta1.ReasonRecordOutdated, node.Yes, false, false},
		{"Slurm does not have the node", slinkyv1beta1.ReasonRecordOutdated, node.No, false, false},
		{"the pod goes", slinkyv1beta1.ReasonRecordOutdated, node.Unknown, true, false},
		{"Kubernetes says that all is well", slinkyv1beta1.ReasonKubernetesNodeNotReady, node.Unknown, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: slinkyv1beta1.PodConditionNeedsAttention, Status: corev1.ConditionTrue, Reason: tc.reason, Message: "look"},
			}}}
			w := workerplan.Worker{SlurmView: workerplan.SlurmView{Registered: tc.known}, Pod: workerpod.Pod{Terminating: tc.terminating}}
			got := wantedConditions(pod, w, workerplan.Action{})
			stays := len(got) == 1 && got[0].Reason == tc.reason && got[0].Message == "look" && got[0].Status == corev1.ConditionTrue
			if stays != tc.want || !tc.want && len(got) > 0 {
				t.Errorf("wanted are %+v", got)
			}
		})
	}
}

// The time is in the message of a wait as well, and both are written at once.
func TestTheConditionOfACompletingNodeHasTheTimeThatMessagesTell(t *testing.T) {
	t.Parallel()
	moment := now.Add(300 * time.Millisecond)
	w := workerplan.Worker{SlurmView: workerplan.SlurmView{Registered: node.Yes, Completing: completingSince(&corev1.Pod{}, moment)}}
	action := workerplan.Action{Shown: workerplan.Shown{Conditions: []string{"SlurmNodeStateCompleting"}, ConditionsKnown: true}}
	got := wantedConditions(&corev1.Pod{}, w, action)
	if len(got) == 0 || got[0].Type != completing || !got[0].LastTransitionTime.Time.Equal(now) {
		t.Fatalf("%+v", got)
	}
	shown := &corev1.Pod{Status: corev1.PodStatus{Conditions: got}}
	if since := completingSince(shown, moment.Add(time.Hour)); !since.Equal(now) {
		t.Errorf("an hour later it is COMPLETING since %s", since)
	}
}

func TestTheReasonOfAWaitIsWhatTheNodeSetReads(t *testing.T) {
	t.Parallel()
	for want, action := range map[string]workerplan.Action{
		slinkyv1beta1.ReasonWaitingForJobs: {Shown: workerplan.Shown{Message: "waiting for jobs to end", Why: "nobody ends them", WaitsForJobs: true}},
		"ScaleIn":                          {Shown: workerplan.Shown{Message: "draining", Why: "a job may start there"}},
	} {
		got := wantedConditions(&corev1.Pod{}, workerplan.Worker{SlurmView: workerplan.SlurmView{Registered: node.Yes}, Pod: workerpod.Pod{Retired: workerpod.ScaleIn}}, action)
		if len(got) != 1 || got[0].Type != slinkyv1beta1.PodConditionRetiring || got[0].Reason != want || got[0].Message != action.Shown.Message+" ("+action.Shown.Why+")" {
			t.Errorf("%+v, want reason %s", got, want)
		}
	}
}
