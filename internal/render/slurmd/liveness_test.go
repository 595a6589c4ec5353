// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// TestNoKubeletEndsAContainerWithJobs: a failed liveness probe ends the container of slurmd, and all jobs in it.
func TestNoKubeletEndsAContainerWithJobs(t *testing.T) {
	livez := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/livez", Port: intstr.FromString("slurmd")}}
	tests := []struct {
		name, spec string
		want       *corev1.Probe
	}{
		{"there is no liveness probe", `{controllerRef: {name: demo}}`, nil},
		{"a user asks for one, and gives a threshold", `{controllerRef: {name: demo}, slurmd: {livenessProbe: {failureThreshold: 30}}}`,
			&corev1.Probe{ProbeHandler: livez, FailureThreshold: 30, PeriodSeconds: 10, TimeoutSeconds: 10}},
		{"a user asks for one of the port", `{controllerRef: {name: demo}, slurmd: {livenessProbe: {tcpSocket: {port: slurmd}, periodSeconds: 60}}}`,
			&corev1.Probe{
				ProbeHandler:     corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("slurmd")}},
				FailureThreshold: 6, PeriodSeconds: 60, TimeoutSeconds: 10,
			}},
		{"a user asks for one in the template", `{controllerRef: {name: demo}, template: {spec: {containers: [{name: slurmd, livenessProbe: {timeoutSeconds: 3}}]}}}`,
			&corev1.Probe{ProbeHandler: livez, FailureThreshold: 6, PeriodSeconds: 10, TimeoutSeconds: 3}},
		{"a user deletes the one that there was", `{controllerRef: {name: demo}, slurmd: {livenessProbe: {$patch: delete}}}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod, err := slurmd.Pod(input(t, tt.spec), workerpod.Place{}, "0123456789")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, pod.Spec.Containers[0].LivenessProbe); diff != "" {
				t.Errorf("the liveness probe of slurmd (-want +got):\n%s", diff)
			}
		})
	}
}
