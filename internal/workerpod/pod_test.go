// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

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
