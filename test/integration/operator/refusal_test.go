// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestARefusalForReasonsOutsideOfTheSpecIsTold(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller")
	quota := operator.Create[corev1.ResourceQuota](o, `{metadata: {name: none}, spec: {hard: {services: "0"}}}`)
	limit := func(most string) {
		quota.Status = corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse(most)},
			Used: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")},
		}
		if err := o.User.Status().Update(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
	}
	limit("0")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}}`)
	message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, "ApplyFailed")
	if want := "exceeded quota: none, requested: services=1, used: services=0, limited: services=0"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	limit("9")
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, "RollingOut")
}
