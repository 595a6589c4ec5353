// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestKeysOfControllerAndAccountingHaveToMatch(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: books}, spec: {embeddedDatabase: {}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {accountingRef: {name: books}}}`)
	want := "spec.slurmKeyRef: key slurm.key in Secret demo-auth-slurm differs from that of Accounting books, key slurm.key in Secret books-auth-slurm; slurmctld and slurmdbd need the same key"
	if got := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionFalse, "KeyMismatch"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionTrue, "KeyMismatch")
	if operator.Exists[appsv1.StatefulSet](o, "demo-controller") {
		t.Error("slurmctld is started with a key that slurmdbd does not know")
	}
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) {
		c.Spec.SlurmKeyRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "books-auth-slurm"}, Key: "slurm.key"}
	})
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionTrue, "KeysGenerated")
}

func TestControllerAndAccountingOfOneNameShareGeneratedKeys(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {embeddedDatabase: {}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {accountingRef: {name: demo}}}`)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionTrue, "KeysGenerated")
	apiserver.Eventually(t, func() error {
		for _, name := range []string{"demo-auth-slurm", "demo-auth-jwt"} {
			s := operator.Get[corev1.Secret](o, name)
			if len(s.OwnerReferences) != 2 {
				return fmt.Errorf("Secret %s is %+v", name, s)
			}
		}
		return nil
	})
}
