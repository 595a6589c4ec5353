// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAManagerHasExactlyItsMarks(t *testing.T) {
	e := newEngine(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.server.Namespace, Name: "w-0", Annotations: map[string]string{"theirs": "1"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "slurmd", Image: "slurmd"}}},
	}
	if err := e.outsider.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	mark := func(manager string, marks Marks) *corev1.Pod {
		t.Helper()
		marked, err := Mark(t.Context(), e.outsider, pod, manager, marks)
		if err != nil {
			t.Fatal(err)
		}
		return marked
	}
	mark("one", Marks{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "1", "c": "1"}})
	mark("another", Marks{Annotations: map[string]string{"d": "1"}})
	marked := mark("one", Marks{Annotations: map[string]string{"b": "2"}})
	var live corev1.Pod
	if err := e.outsider.Get(t.Context(), client.ObjectKeyFromObject(pod), &live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "1", "b": "2", "d": "1"}, live.Annotations); diff != "" || len(live.Labels) > 0 {
		t.Errorf("labels %v, annotations %s", live.Labels, diff)
	}
	if marked.ResourceVersion != live.ResourceVersion || marked.UID != live.UID {
		t.Errorf("it tells of version %s of %s, which is at %s", marked.ResourceVersion, marked.UID, live.ResourceVersion)
	}
	if _, err := Mark(t.Context(), e.outsider, pod, "one", Marks{ResourceVersion: pod.ResourceVersion}); !apierrors.IsConflict(err) {
		t.Errorf("a mark from an old view: %v", err)
	}
}
