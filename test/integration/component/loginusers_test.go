// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAListOfUsersThatIsNoLongerThereIsDeleted(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller", "loginset")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}}`)
	operator.Create[slinkyv1beta1.LoginSet](o, operator.ALoginSet)
	operator.ExpectExists[corev1.ConfigMap](o, "demo-login-users")
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Users = nil })
	operator.ExpectGone[corev1.ConfigMap](o, "demo-login-users")
}
