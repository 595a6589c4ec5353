// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestADeletedWorkerComesBackUnderItsName(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	uid := operator.Get[corev1.Pod](o, "w-0").UID
	operator.Delete[corev1.Pod](o, "w-0")
	o.ExpectReplaced("w-0", uid)
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
}

func TestAFailedWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	uid := operator.Get[corev1.Pod](o, "w-1").UID
	o.SetPod("w-1", corev1.PodFailed)
	o.ExpectReplaced("w-1", uid)
	if !operator.Exists[corev1.Pod](o, "w-0") {
		t.Error("w-0 is gone too")
	}
}
