// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestSinceWhenSlurmctldRuns(t *testing.T) {
	started := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		edit func(c *slinkyv1beta1.Controller, p *corev1.Pod)
		want time.Time
	}{
		"the container of slurmctld says since when it runs": {func(*slinkyv1beta1.Controller, *corev1.Pod) {}, started},
		"a container that does not run says nothing":         {func(_ *slinkyv1beta1.Controller, p *corev1.Pod) { p.Status.ContainerStatuses[1].State.Running = nil }, time.Time{}},
		"another container says nothing": {func(_ *slinkyv1beta1.Controller, p *corev1.Pod) {
			p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1]
		}, time.Time{}},
		"a container whose kubelet is silent says nothing": {func(_ *slinkyv1beta1.Controller, p *corev1.Pod) {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
		}, time.Time{}},
		"a slurmctld that runs elsewhere says nothing": {func(c *slinkyv1beta1.Controller, _ *corev1.Pod) { c.Spec.External = true }, time.Time{}},
		"a slurmctld whose backup may have been in charge says nothing": {func(c *slinkyv1beta1.Controller, _ *corev1.Pod) {
			c.Spec.HA = &slinkyv1beta1.ControllerHA{Enabled: true}
		}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			running := func(name string, at time.Time) corev1.ContainerStatus {
				return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}
			}
			c, p := &slinkyv1beta1.Controller{}, &corev1.Pod{Status: corev1.PodStatus{
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				ContainerStatuses: []corev1.ContainerStatus{running("logfile", started.Add(-time.Hour)), running("slurmctld", started)},
			}}
			test.edit(c, p)
			if got := runsSince(c, p); !got.Equal(test.want) {
				t.Errorf("since %s, want %s", got, test.want)
			}
		})
	}
}
