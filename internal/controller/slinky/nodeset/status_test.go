// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestTheStatusTellsWhyAWorkerEnded(t *testing.T) {
	set := manifest.Parse[slinkyv1beta1.NodeSet](t, `{metadata: {name: w}, status: {desired: 1}}`)
	worker := manifest.Parse[corev1.Pod](t, `{metadata: {name: w-0, labels: {controller.kubernetes.io/hash: now}},
		status: {containerStatuses: [{name: slurmd, lastState: {terminated: {message: sshd refuses it}}}]}}`)
	part := count(set, []corev1.Pod{*worker}, "now", time.Now())
	if want := "0 of 1 workers are available; container slurmd of w-0 ended: sshd refuses it"; part.Message != want || part.Ready {
		t.Errorf("%q, want %q", part.Message, want)
	}
}
