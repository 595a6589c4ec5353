// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// realWorker makes a worker pod on a real API server, and returns what reads it.
func realWorker(t *testing.T, server *apiserver.Server, c client.Client, name string) (read func() *corev1.Pod) {
	t.Helper()
	pod := workerOf(name, name)
	status := pod.Status
	pod.Namespace, pod.OwnerReferences = server.Namespace, nil
	pod.Spec.Containers = []corev1.Container{{Name: "slurmd", Image: "slurmd"}}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status = status
	if err := c.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return func() *corev1.Pod {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
}

func TestCordon(t *testing.T) {
	server := apiserver.Start(t)
	c := server.Client(t, newScheme(t))
	config := as(t, server, "cordoner", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "patch"}})
	kubeconfig := writeKubeconfig(t, config, server.Namespace)
	pods := map[string]func() *corev1.Pod{}
	for _, name := range []string{"w-0", "w-1", "w-2", "w-3", "w-4"} {
		pods[name] = realWorker(t, server, c, name)
	}
	// What the operator, and users without the plugin, have done.
	operator := func(pod string, annotations map[string]string) {
		t.Helper()
		err := c.Apply(t.Context(), corev1ac.Pod(pod, server.Namespace).WithAnnotations(annotations), client.FieldOwner("coxswain-nodeset"), client.ForceOwnership)
		if err != nil {
			t.Fatal(err)
		}
	}
	operator("w-1", map[string]string{slinkyv1beta1.AnnotationRetired: "scale-in", slinkyv1beta1.AnnotationPodCordon: "true"})
	for _, name := range []string{"w-2", "w-4"} {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+slinkyv1beta1.AnnotationPodCordon+`":"true"}}}`))
		if err := c.Patch(t.Context(), pods[name](), patch, client.FieldOwner("kubectl-annotate")); err != nil {
			t.Fatal(err)
		}
	}
	operator("w-4", map[string]string{slinkyv1beta1.AnnotationNodeCordoned: "true", slinkyv1beta1.AnnotationPodCordon: "true"})
	held := pods["w-3"]()
	says(held, slinkyv1beta1.PodConditionOutOfService, corev1.ConditionTrue, "HeldBySomebody", "drained by alice: disk")
	if err := c.Status().Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}

	var seen strings.Builder
	// try runs a command, and compares the annotations that are left of a pod.
	try := func(code int, pod, cordoned, reason string, args ...string) {
		t.Helper()
		got := run(t.Context(), t, program(), append([]string{"--kubeconfig=" + kubeconfig}, args...)...).check(t, code)
		seen.WriteString(strings.ReplaceAll(string(got.golden(args...)), server.Namespace, "default"))
		annotations := pods[pod]().Annotations
		if is := annotations[slinkyv1beta1.AnnotationPodCordon]; is != cordoned {
			t.Errorf("after %q pod-cordon of %s is %q, want %q", args, pod, is, cordoned)
		}
		if is := annotations[slinkyv1beta1.AnnotationPodCordonReason]; is != reason {
			t.Errorf("after %q the reason of %s is %q, want %q", args, pod, is, reason)
		}
	}
	try(0, "w-0", "true", "", "cordon", "w-0")
	try(0, "w-0", "true", "disk is replaced", "drain", "w-0", "--reason=disk is replaced")
	try(0, "w-0", "true", "disk is replaced", "cordon", "w-0")
	try(0, "w-0", "", "", "undrain", "w-0")
	try(0, "w-0", "", "", "uncordon", "w-0")
	try(0, "w-1", "true", "mine", "drain", "w-1", "--reason=mine")
	try(0, "w-1", "true", "", "undrain", "w-1")
	try(0, "w-2", "", "", "uncordon", "w-2")
	try(0, "w-3", "true", "", "cordon", "w-3")
	try(0, "w-3", "", "", "uncordon", "w-3")
	try(0, "w-4", "true", "", "uncordon", "w-4")
	try(1, "w-2", "true", "", "cordon", "w-99", "w-2")
	try(1, "w-0", "", "", "drain", "w-0")
	golden.Check(t, "cordon/commands.txt", []byte(seen.String()))
}

func TestHelpOfCordon(t *testing.T) {
	w := newWorld(t)
	for _, command := range []string{"cordon", "uncordon", "drain", "undrain"} {
		golden.Check(t, "cordon/help_"+command+".txt", w.run(t, command, "--help").check(t, 0).golden(command, "--help"))
	}
}

// The pod is another one by the time that it is written to: nothing is cordoned, and no pod is made.
func TestAPodThatWasMadeAnewIsNotCordoned(t *testing.T) {
	server := apiserver.Start(t)
	c := server.Client(t, newScheme(t))
	read := realWorker(t, server, c, "w-0")
	first := read().DeepCopy()
	if err := c.Delete(t.Context(), first, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	apply := func() error {
		return c.Apply(t.Context(), corev1ac.Pod("w-0", server.Namespace).WithUID(first.UID).WithAnnotations(map[string]string{"a": "b"}), client.FieldOwner("kubectl-slurm"))
	}
	if err := apply(); err == nil {
		t.Error("a pod that is gone was cordoned")
	}
	read = realWorker(t, server, c, "w-0")
	if err := apply(); err == nil {
		t.Error("a pod that was made anew was cordoned")
	}
	if got := read().Annotations["a"]; got != "" {
		t.Errorf("the new pod has the annotation %q", got)
	}
}
