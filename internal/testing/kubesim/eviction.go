// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubesim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// evict deletes a pod if its PodDisruptionBudget allows that; the caller holds the lock. That is in the status of the budget,
// which is written by a controller that is not part of the server. Pods in which nothing runs, or that go already, are not
// asked about.
func (s *Server) evict(r *request, res *resource) (int, *unstructured.Unstructured, error) {
	live := res.objects[key{r.namespace, r.name}]
	if live == nil {
		return 0, nil, r.absent()
	}
	var eviction policyv1.Eviction
	var pod corev1.Pod
	if err := errors.Join(json.Unmarshal(r.body, &eviction), runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &pod)); err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	if eviction.DeleteOptions == nil {
		eviction.DeleteOptions = &metav1.DeleteOptions{}
	}
	options, err := json.Marshal(eviction.DeleteOptions)
	if err != nil {
		return 0, nil, apierrors.NewInternalError(err)
	}
	if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
		if err := s.disrupt(&pod); err != nil {
			return 0, nil, err
		}
	}
	target, err := targeted(live)
	if err != nil {
		return 0, nil, err
	}
	s.store(res, live, target)
	deletion := *r
	deletion.subresource, deletion.body = "", options
	if _, _, err := s.remove(&deletion, res, target); err != nil {
		return 0, nil, err
	}
	done := &unstructured.Unstructured{Object: map[string]any{"status": "Success"}}
	done.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Status"))
	return http.StatusCreated, done, nil
}

// targeted returns a pod with the condition that it is evicted.
func targeted(pod *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	obj := pod.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	for _, c := range conditions {
		if fields, ok := c.(map[string]any); ok && fields["type"] == string(corev1.DisruptionTarget) {
			return obj, nil
		}
	}
	conditions = append(conditions, map[string]any{
		"type": string(corev1.DisruptionTarget), "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
	})
	if err := unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions"); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return obj, nil
}

// disrupt takes a disruption from the budget of a pod, if there is one.
func (s *Server) disrupt(pod *corev1.Pod) error {
	gvk := policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	var found *policyv1.PodDisruptionBudget
	var live *unstructured.Unstructured
	for _, obj := range s.of(gvk).sorted() {
		var b policyv1.PodDisruptionBudget
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &b); err != nil {
			return apierrors.NewInternalError(err)
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Namespace != pod.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if found != nil {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
			}}
		}
		found, live = &b, obj
	}
	switch {
	case found == nil, !isReady(pod) && ignoresUnready(found):
		return nil
	case found.Status.ObservedGeneration < found.Generation:
		return tooMany(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", found.Name))
	case found.Status.DisruptionsAllowed <= 0:
		return tooMany(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			found.Name, found.Status.DesiredHealthy, found.Status.CurrentHealthy))
	}
	next := live.DeepCopy()
	if err := unstructured.SetNestedField(next.Object, int64(found.Status.DisruptionsAllowed-1), "status", "disruptionsAllowed"); err != nil {
		return apierrors.NewInternalError(err)
	}
	s.store(s.of(gvk), live, next)
	return nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ignoresUnready reports whether a pod that is not ready may be evicted without asking how many disruptions are allowed.
func ignoresUnready(b *policyv1.PodDisruptionBudget) bool {
	if policy := b.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

func tooMany(seconds int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}
