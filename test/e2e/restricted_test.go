// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// restrict makes the namespace refuse pods that are not at level "restricted" of the Pod Security Standards.
func (s *scene) restrict(t *testing.T) {
	t.Helper()
	var namespace corev1.Namespace
	if err := s.Get(t.Context(), client.ObjectKey{Name: s.namespace}, &namespace); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(namespace.DeepCopy())
	if namespace.Labels == nil {
		namespace.Labels = map[string]string{}
	}
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := s.Patch(t.Context(), &namespace, patch); err != nil {
		t.Fatal(err)
	}
}

// everyPodIsRestricted checks that the namespace does refuse pods, and that it would not refuse the operator. It also checks what
// the level does not ask for: root file systems that cannot be written to, and no token of Kubernetes.
func (s *scene) everyPodIsRestricted(t *testing.T) {
	t.Helper()
	root := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "root"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "root", Image: "root"}}},
	}
	if err := s.Create(t.Context(), root, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Fatalf("the namespace does not enforce anything: %v", err)
	}
	var operator appsv1.Deployment
	if err := s.Get(t.Context(), walk.Operator, &operator); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "operator"}, Spec: operator.Spec.Template.Spec}
	pod.Spec.ServiceAccountName = "default"
	if err := s.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("the operator is not restricted: %v", err)
	}
	mustBeReadOnly(t, "the operator", pod.Spec)

	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	daemons := map[string]bool{}
	for _, p := range pods.Items {
		daemons[p.Labels["app.kubernetes.io/name"]] = true
		mustBeReadOnly(t, p.Name, p.Spec)
		if p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
			t.Errorf("pod %s has a token of Kubernetes", p.Name)
		}
	}
	for _, daemon := range []string{"slurmctld", "slurmdbd", "slurmrestd", "mariadb"} {
		if !daemons[daemon] {
			t.Errorf("there is no pod of %s", daemon)
		}
	}
}

func mustBeReadOnly(t *testing.T, who string, spec corev1.PodSpec) {
	t.Helper()
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("container %s of %s can write to its root file system", c.Name, who)
		}
	}
}
