// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// expectError returns the error of type E in err, and fails the test if there is none.
func expectError[E error](t *testing.T, err error) E {
	t.Helper()
	got, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("got error %v, want %T", err, got)
	}
	return got
}

func expectProblem(t *testing.T, err error, reason string) {
	t.Helper()
	problems, rest := problem.FromError(err)
	if rest != nil || len(problems) != 1 || problems[0].Reason != reason || problems[0].Waiting {
		t.Errorf("got problems %+v and error %v, want one problem %s", problems, rest, reason)
	}
}

func jobTemplate(o client.Object) *corev1.PodTemplateSpec { return &o.(*batchv1.Job).Spec.Template }

// gone waits until the cache does not have the object any more.
func (e *engine) gone(obj client.Object) {
	e.t.Helper()
	apiserver.Eventually(e.t, func() error {
		err := e.client.Get(e.t.Context(), client.ObjectKeyFromObject(obj), newOf(obj))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("%T is still there", obj), err)
	})
}

func TestObjectsOfOthersAreNotTouched(t *testing.T) {
	controlled := func(e *engine) metav1.ObjectMeta {
		m := e.meta("config")
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e.newOwner("somebody"), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
		return m
	}
	tests := []struct {
		name   string
		theirs func(*engine) metav1.ObjectMeta
		holder string
	}{
		{"an object that another one controls, whatever its labels", controlled, "somebody"},
		{"an object without owner and labels", func(e *engine) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: e.server.Namespace, Name: "config"}
		}, ""},
		{"an object without owner whose labels say otherwise", func(e *engine) metav1.ObjectMeta {
			m := e.meta("config")
			m.Labels["app.kubernetes.io/name"] = "something-else"
			return m
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEngine(t)
			theirs := &corev1.ConfigMap{ObjectMeta: tt.theirs(e), Data: map[string]string{"a": "theirs"}}
			if err := e.outsider.Create(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			free := e.configMap(nil) // half of a change may be worse than none
			free.Name = "free"
			_, err := e.Apply(t.Context(), e.owner, free, e.configMap(map[string]string{"a": "ours"}))
			if got := expectError[*ConflictError](t, err); got.Holder.Name != tt.holder || got.Owner.Name != "owner" || got.Object.Name != "config" {
				t.Errorf("got %+v", got)
			}
			expectProblem(t, err, ReasonConflict)
			e.server.Writes.ExpectNone(t)
		})
	}
}

func TestAnOrphanWithOurLabelsIsAdopted(t *testing.T) {
	e := newEngine(t)
	if err := e.outsider.Create(t.Context(), e.configMap(map[string]string{"a": "old", "theirs": "x"})); err != nil {
		t.Fatal(err)
	}
	if got := e.apply(e.configMap(map[string]string{"a": "new"})); got.Action != Adopted {
		t.Errorf("got %+v", got)
	}
	live := e.live(e.configMap(nil)).(*corev1.ConfigMap)
	if !metav1.IsControlledBy(live, e.owner) || live.Data["a"] != "new" || live.Data["theirs"] != "x" {
		t.Errorf("owners %v, data %v", live.OwnerReferences, live.Data)
	}
}

func TestWhatAnEarlierOwnerOfTheSameNameLeftIsWaitedFor(t *testing.T) {
	e := newEngine(t)
	cm := e.configMap(nil)
	e.apply(cm)
	if err := e.outsider.Delete(t.Context(), e.owner); err != nil {
		t.Fatal(err)
	}
	e.owner = e.newOwner("owner")
	e.server.Writes.Reset()
	if got := e.apply(cm); got.Action != Waiting {
		t.Errorf("got %+v", got)
	}
	e.server.Writes.ExpectNone(t)
}

func TestASharedObjectBelongsToAllItsOwners(t *testing.T) {
	e := newEngine(t)
	first, second := e.owner, e.newOwner("second")
	cm := Shared(e.configMap(map[string]string{"a": "1"}))
	e.apply(cm)
	e.owner = second
	if got := e.apply(cm); got.Action != Updated {
		t.Errorf("got %+v", got)
	}
	e.server.Writes.Reset()
	e.apply(cm)
	e.owner = first
	e.apply(cm)
	e.server.Writes.ExpectNone(t)
	live := e.live(e.configMap(nil))
	if got := live.GetOwnerReferences(); len(got) != 2 || metav1.GetControllerOf(live) != nil {
		t.Errorf("owners: %v", got)
	}
	// A third owner that wants it for itself alone gets an error; nothing of a shared object is pruned.
	result, err := e.Prune(t.Context(), e.owner, nil, &corev1.ConfigMap{})
	if err != nil || result.Wrote() {
		t.Errorf("pruned %s, %v", result, err)
	}
}

func TestAnObjectOfAnotherNamespaceIsRefused(t *testing.T) {
	e := newEngine(t)
	cm := e.configMap(nil)
	cm.Namespace = "default"
	if _, err := e.Apply(t.Context(), e.owner, cm); err == nil {
		t.Error("applied an object in another namespace than its owner's")
	}
	e.server.Writes.ExpectNone(t)
}
