// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestWhetherSlurmHasKeptItsState(t *testing.T) {
	pod := func(registered node.Answer, change ...func(*Pod)) Pod {
		p := Pod{Phase: "Running", Ready: true, Registered: registered}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	was := func(p *Pod) { p.Was = true }
	unready := func(p *Pod) { p.Ready = false }
	terminating := func(p *Pod) { p.Terminating = true }
	tests := []struct {
		name string
		pods []Pod
		want node.Answer
	}{
		{"Slurm that has all records has kept its state", []Pod{pod(node.Yes, was), pod(node.Yes, was)}, node.Yes},
		{"Slurm that lacks one record of several has kept its state", []Pod{pod(node.Yes, was), pod(node.No, was)}, node.Yes},
		{"Slurm that lacks most records may have lost its state", []Pod{pod(node.Yes, was), pod(node.No, was), pod(node.No, was)}, node.Unknown},
		{"Slurm that lacks the only record may have lost its state", []Pod{pod(node.No, was)}, node.Unknown},
		{"Slurm that lacks the only record may have lost its state, also when the worker is not ready", []Pod{pod(node.No, was, unready)}, node.Unknown},
		{"workers that Slurm never had prove nothing", []Pod{pod(node.No), pod(node.No), pod(node.No)}, node.Yes},
		{"workers that are going prove nothing", []Pod{pod(node.No, was, terminating), pod(node.No, was, terminating), pod(node.Yes)}, node.Yes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Kept(tt.pods); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestWhichChecksAPodIsWithout(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		slinkyv1beta1.AnnotationRequiredChecks:        "disk,gpu,network",
		slinkyv1beta1.AnnotationCheckPrefix + "disk":  slinkyv1beta1.CheckPassed + Machine{Node: "node-1", UID: "u"}.String(),
		slinkyv1beta1.AnnotationCheckPrefix + "gpu":   "failed",
		slinkyv1beta1.AnnotationCheckPrefix + "other": "failed",
	}}}
	if got := Facts(pod).Unchecked; !slices.Equal(got, []string{"gpu", "network"}) {
		t.Errorf("checks %v have passed on no machine", got)
	}
}
