// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestADeletedWorkerComesBackUnderItsName(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	uid := operator.Get[corev1.Pod](o, "w-0").UID
	operator.Delete[corev1.Pod](o, "w-0")
	apiserver.Eventually(t, func() error {
		if p := operator.Get[corev1.Pod](o, "w-0"); p == nil || p.UID == uid {
			return fmt.Errorf("w-0 is not back")
		}
		return nil
	})
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
}

func TestAFailedWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	uid := operator.Get[corev1.Pod](o, "w-1").UID
	o.SetPod("w-1", corev1.PodFailed)
	apiserver.Eventually(t, func() error {
		if p := operator.Get[corev1.Pod](o, "w-1"); p == nil || p.UID == uid {
			return fmt.Errorf("w-1 is not replaced")
		}
		return nil
	})
	if operator.Get[corev1.Pod](o, "w-0") == nil {
		t.Error("w-0 is gone too")
	}
}
