// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// TestMungeWaitsForItsKeyAndFollowsIt gives the pods of slurmctld and of logins munged before its key is there, and then another key.
func TestMungeWaitsForItsKeyAndFollowsIt(t *testing.T) {
	t.Parallel()
	o := loginNodes(t)
	ref := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "demo-munge"}, Key: "munge.key"}
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.Munge = &slinkyv1beta1.Munge{KeyRef: ref} })
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Munge = &slinkyv1beta1.Munge{KeyRef: ref} })
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, slinkyv1beta1.ReasonKeyMissing)
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, slinkyv1beta1.ReasonKeyMissing)
	if hasMunge(&operator.Get[appsv1.StatefulSet](o, "demo-controller").Spec.Template) {
		t.Error("slurmctld has munged without a key")
	}

	operator.Create[corev1.Secret](o, `{metadata: {name: demo-munge}, stringData: {munge.key: "0123456789abcdef0123456789abcdef"}}`)
	before := mungeDigests(o, t, "", "")
	operator.Change(o, "demo-munge", func(s *corev1.Secret) { s.Data["munge.key"] = []byte("fedcba9876543210fedcba9876543210") })
	mungeDigests(o, t, before[0], before[1])
}

// mungeDigests waits until both pod templates have munged, and other digests of its key than these.
func mungeDigests(o *operator.Operator, t *testing.T, controller, login string) (out [2]string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		templates := []*corev1.PodTemplateSpec{
			&operator.Get[appsv1.StatefulSet](o, "demo-controller").Spec.Template, &operator.Get[appsv1.Deployment](o, "demo-login").Spec.Template,
		}
		for i, was := range []string{controller, login} {
			if !hasMunge(templates[i]) {
				return errors.New("there is no munged")
			}
			if out[i] = templates[i].Annotations[slinkyv1beta1.AnnotationMungeKeyHash]; out[i] == "" || out[i] == was {
				return fmt.Errorf("the digest of the key is %q", out[i])
			}
		}
		return nil
	})
	return out
}

func hasMunge(template *corev1.PodTemplateSpec) bool {
	return slices.ContainsFunc(template.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == "munge" && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}
