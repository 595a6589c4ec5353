// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// written are pods as our own last writes left them. A cache that does not show such a write yet would have it made again:
// with a thousand workers that is one of two.
type written struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]version
}

type version struct {
	uid      types.UID
	resource string // empty when it was deleted
}

// deleted notes that a pod was deleted.
func (w *written) deleted(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(pod, "")
}

// set notes a version. The caller holds the lock.
func (w *written) set(pod *corev1.Pod, resource string) {
	if w.pods == nil {
		w.pods = map[types.NamespacedName]version{}
	}
	w.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = version{pod.UID, resource}
}

// note notes the version of a pod after a write, which the API server has filled in; empty when there was none.
func (w *written) note(pod *corev1.Pod, resource string) {
	if resource == "" {
		return // it is gone
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(pod, resource)
}

// versionOf is the version that the API server has put into what was applied.
func versionOf(applied *corev1ac.PodApplyConfiguration) string {
	if applied.ResourceVersion == nil {
		return ""
	}
	return *applied.ResourceVersion
}

// behind says that a pod as the cache has it is older than our last write to it. An event of that write is on its way.
func (w *written) behind(pod *corev1.Pod) bool {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.pods[key]
	if !ok {
		return false
	}
	if last.resource == "" && last.uid == pod.UID && pod.DeletionTimestamp == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, last.resource)
	if last.uid == pod.UID && err == nil && order < 0 {
		return true
	}
	delete(w.pods, key) // versions that cannot be compared must not stop it for ever
	return false
}

// forget drops what is known of a pod that is gone.
func (w *written) forget(pod types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, pod)
}
