// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { Main(m) }

func TestWritesOfTheTestAreCountedAndThoseOfOthersAreNot(t *testing.T) {
	s := StartBare(t)
	c := s.Client(t, scheme.Scheme)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "a"}}
	if err := c.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		t.Fatal(err)
	}
	if err := s.Outsider(t, scheme.Scheme).Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	all := s.Writes.All()
	want := Write{Method: "POST", Path: "/api/v1/namespaces/" + s.Namespace + "/configmaps", Code: 201}
	if len(all) != 1 || all[0] != want {
		t.Errorf("writes = %v, want only %v", all, want)
	}
	s.Writes.Reset()
	s.Writes.ExpectNone(t)
}

func TestEachTestHasItsOwnNamespace(t *testing.T) {
	if a, b := StartBare(t), StartBare(t); a.Namespace == b.Namespace {
		t.Errorf("two tests share namespace %s", a.Namespace)
	}
}

func TestOurCRDsAreServed(t *testing.T) {
	s := Start(t)
	dir, err := crdDirectory()
	if err != nil || dir == "" {
		t.Fatalf("finding the CRDs: %q, %v", dir, err)
	}
	mapper := s.Client(t, scheme.Scheme).RESTMapper()
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "slinky.slurm.net", Kind: "Controller"}, "v1beta1"); err != nil {
		t.Error(err)
	}
}

func TestAManagerIsInSyncAndStopsWithItsTest(t *testing.T) {
	s := StartBare(t)
	mgr := s.Manager(t, scheme.Scheme, nil)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "a"}}
	if err := mgr.GetClient().Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	Eventually(t, func() error {
		return mgr.GetClient().Get(t.Context(), client.ObjectKeyFromObject(cm), &corev1.ConfigMap{})
	})
}

func TestWhatIsStoredOutlivesAnInterruption(t *testing.T) {
	s := StartBare(t)
	c := s.Client(t, scheme.Scheme)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "a"}}
	if err := c.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	s.Interrupt(t, func() {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err == nil {
			t.Error("the server still answers")
		}
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		t.Error(err)
	}
}

func TestAWrongBinaryPathIsNamedAndNotReplaced(t *testing.T) {
	t.Setenv(BinaryEnv, "/nowhere/hyperkube")
	if _, err := findBinary(); err == nil {
		t.Error("found a binary although the named one does not exist")
	}
}
