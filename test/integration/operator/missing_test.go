// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestWhatIsMissingIsNamedAndHeals(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.NodeSet](o, operator.ANodeSet)
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	operator.Create[slinkyv1beta1.LoginSet](o, operator.ALoginSet)
	for _, message := range []string{
		operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Ready", metav1.ConditionFalse, "ReferenceNotFound"),
		operator.ExpectCondition[slinkyv1beta1.RestApi](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound"),
		operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, "ReferenceNotFound"),
	} {
		if !strings.HasPrefix(message, "spec.controllerRef: Controller demo does not exist") {
			t.Error(message)
		}
	}
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Stalled", metav1.ConditionFalse, "Reconciled")

	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key},
		jwksKeyRef: {name: jwks, key: keys.json}, accountingRef: {name: demo}, configFileRefs: [{name: files}]}}`)
	ready := func() string {
		return operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionFalse, "KeyMissing")
	}
	if got, want := ready(), "spec.slurmKeyRef: Secret keys does not exist; create it with the key slurm.key"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	operator.Create[corev1.Secret](o, `{metadata: {name: keys}, stringData: {other.key: x}}`)
	expectMessage(t, ready, "spec.slurmKeyRef: Secret keys has no key slurm.key, or an empty one")
	operator.Change(o, "keys", func(s *corev1.Secret) { s.Data["slurm.key"] = []byte("the-slurm-key") })
	expectMessage(t, ready, "spec.jwtHs256KeyRef: Secret jwt does not exist; create it with the key jwt_hs256.key")
	operator.Create[corev1.Secret](o, operator.JWT)
	expectMessage(t, ready, "spec.jwksKeyRef: ConfigMap jwks does not exist; create it or remove the reference")
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: jwks}, data: {keys.json: "{}"}}`)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionTrue, "KeysFound")

	notReady := func() string {
		return operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	}
	expectMessage(t, notReady, "spec.accountingRef: Accounting demo does not exist; create it or remove the reference; "+
		"spec.configFileRefs[0]: ConfigMap files does not exist; create it or remove the reference")
	if operator.Exists[corev1.ConfigMap](o, "demo-config") {
		t.Error("a configuration is written although half of it is missing")
	}
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: files}, data: {plugstack.conf: "#"}}`)
	operator.Create[slinkyv1beta1.Accounting](o, operator.AnAccounting)
	apiserver.Eventually(t, func() error {
		if !operator.Exists[appsv1.StatefulSet](o, "demo-controller") || len(o.Workers()) != 2 || !operator.Exists[appsv1.Deployment](o, "demo-login") ||
			!operator.Exists[appsv1.Deployment](o, "demo-restapi") || !operator.Exists[appsv1.StatefulSet](o, "demo-accounting") {
			return fmt.Errorf("not everything is there")
		}
		return nil
	})
	o.RunWorkloads()
	o.RunWorkers()
	o.ExpectReady()

	digest := operator.Get[slinkyv1beta1.Controller](o, "demo").Status.ConfigDigest
	operator.Change(o, "files", func(cm *corev1.ConfigMap) { cm.Data["plugstack.conf"] = "# other" })
	apiserver.Eventually(t, func() error {
		if now := operator.Get[slinkyv1beta1.Controller](o, "demo").Status.ConfigDigest; now == digest {
			return fmt.Errorf("a changed file of the user's is not noticed")
		}
		return nil
	})
}

// expectMessage waits for the message of a condition.
func expectMessage(t *testing.T, read func() string, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := read(); got != want {
			return fmt.Errorf("the message is %q, want %q", got, want)
		}
		return nil
	})
}
