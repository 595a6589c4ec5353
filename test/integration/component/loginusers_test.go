// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAListOfUsersThatIsNoLongerThereIsDeleted(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller", "loginset")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}}`)
	operator.Create[slinkyv1beta1.LoginSet](o, operator.ALoginSet)
	apiserver.Eventually(t, func() error {
		if operator.Get[corev1.ConfigMap](o, "demo-login-users") == nil {
			return errors.New("there is no list of users")
		}
		return nil
	})
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Users = nil })
	apiserver.Eventually(t, func() error {
		if operator.Get[corev1.ConfigMap](o, "demo-login-users") != nil {
			return errors.New("the list of users is still there")
		}
		return nil
	})
}
