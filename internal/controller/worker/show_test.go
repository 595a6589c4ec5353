// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/worker"
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
			w := worker.Worker{Known: tc.known, Pod: nodeset.Pod{Terminating: tc.terminating}}
			got := wantedConditions(pod, w, worker.Action{})
			stays := len(got) == 1 && got[0].Reason == tc.reason && got[0].Message == "look" && got[0].Status == corev1.ConditionTrue
			if stays != tc.want || !tc.want && len(got) > 0 {
				t.Errorf("wanted are %+v", got)
			}
		})
	}
}

func TestTheReasonOfAWaitIsWhatTheNodeSetReads(t *testing.T) {
	t.Parallel()
	for want, action := range map[string]worker.Action{
		slinkyv1beta1.ReasonWaitingForJobs: {Shown: worker.Shown{Message: "waiting for jobs to end", WaitsForJobs: true}},
		"ScaleIn":                          {Shown: worker.Shown{Message: "draining"}},
	} {
		got := wantedConditions(&corev1.Pod{}, worker.Worker{Known: node.Yes, Pod: nodeset.Pod{Retired: nodeset.ScaleIn}}, action)
		if len(got) != 1 || got[0].Type != slinkyv1beta1.PodConditionRetiring || got[0].Reason != want {
			t.Errorf("%+v, want reason %s", got, want)
		}
	}
}
