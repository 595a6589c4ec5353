// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// TestSSSDOfSlurmctldFollowsItsConfiguration gives slurmctld and slurmrestd, which run, SSSD before its Secret is there, and then another
// sssd.conf.
func TestSSSDOfSlurmctldFollowsItsConfiguration(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller", "restapi")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}}`)
	operator.Create[slinkyv1beta1.RestApi](o, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	operator.ExpectExists[appsv1.Deployment](o, "demo-restapi")
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) {
		c.Spec.SSSD = &slinkyv1beta1.SSSD{ConfRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "directory"}, Key: "sssd.conf"}}
	})
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, slinkyv1beta1.ReasonKeyMissing)
	o.Settle()
	if got := sssdDigests(o); got != [2]string{} {
		t.Errorf("pods have SSSD before there is an sssd.conf: %q", got)
	}

	operator.Create[corev1.Secret](o, `{metadata: {name: directory}, stringData: {sssd.conf: one}}`)
	changed := func(before [2]string) (out [2]string) {
		apiserver.Eventually(t, func() error {
			out = sssdDigests(o)
			if out[0] == before[0] || out[1] == before[1] {
				return errors.New("a pod has the old sssd.conf, or none")
			}
			return nil
		})
		return out
	}
	before := changed([2]string{})
	operator.Change(o, "directory", func(s *corev1.Secret) { s.Data["sssd.conf"] = []byte("two") })
	before = changed(before)

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) {
		c.Spec.SSSD.AuthoritiesRef = &corev1.LocalObjectReference{Name: "ca"}
	})
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	if got := sssdDigests(o); got[0] != before[0] {
		t.Error("slurmctld is replaced before the certificates are there")
	}
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: ca}, data: {a: one}}`)
	before = changed(before)
	operator.Change(o, "ca", func(m *corev1.ConfigMap) { m.Data["a"] = "two" })
	changed(before)
}

// sssdDigests returns the digests of sssd.conf in the pod templates of slurmctld and of slurmrestd; empty without.
func sssdDigests(o *operator.Operator) [2]string {
	const annotation = slinkyv1beta1.AnnotationSssdConfHash
	return [2]string{
		operator.Get[appsv1.StatefulSet](o, "demo-controller").Spec.Template.Annotations[annotation],
		operator.Get[appsv1.Deployment](o, "demo-restapi").Spec.Template.Annotations[annotation],
	}
}
