// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// owner is the field manager of what this controller puts on pods, apart from what others put on them.
const owner = kube.FieldManager + "-worker"

// show puts Slurm's state on the pod: the protect label, and one condition for each state that holds. Only these are
// written, and only when they differ.
func (r *reconciler) show(ctx context.Context, pod *corev1.Pod, w nodeset.Worker, action nodeset.Action) error {
	protected := pod.Labels[slinkyv1beta1.LabelPodProtect] == "true"
	if action.Protected != node.Unknown && protected != (action.Protected == node.Yes) {
		labels := corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID)
		if !protected {
			labels = labels.WithLabels(map[string]string{slinkyv1beta1.LabelPodProtect: "true"})
		}
		if err := ignoreGone(r.Client.Apply(ctx, labels, client.FieldOwner(owner), client.ForceOwnership)); err != nil {
			return fmt.Errorf("labelling Pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	if !action.ConditionsKnown || sameConditions(pod, action.Conditions, w.Reason.Text) {
		return nil
	}
	status := corev1ac.PodStatus()
	for _, kind := range action.Conditions {
		since := metav1.NewTime(r.Clock.Now())
		if c := condition(pod, kind); c != nil && c.Status == corev1.ConditionTrue {
			since = c.LastTransitionTime
		}
		status = status.WithConditions(corev1ac.PodCondition().
			WithType(corev1.PodConditionType(kind)).WithStatus(corev1.ConditionTrue).
			WithMessage(w.Reason.Text).WithLastTransitionTime(since))
	}
	apply := corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithStatus(status)
	if err := ignoreGone(r.Client.Status().Apply(ctx, apply, client.FieldOwner(owner), client.ForceOwnership)); err != nil {
		return fmt.Errorf("writing the Slurm state of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// sameConditions says whether the pod shows exactly these SlurmNodeState conditions with this message.
func sameConditions(pod *corev1.Pod, wanted []string, message string) bool {
	for _, kind := range node.AllConditions() {
		c := condition(pod, kind)
		if want := slices.Contains(wanted, kind); want != (c != nil && c.Status == corev1.ConditionTrue) || (want && c.Message != message) {
			return false
		}
	}
	return true
}

func condition(pod *corev1.Pod, kind string) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if string(pod.Status.Conditions[i].Type) == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// ignoreGone forgives that the pod is gone, or that another one has its name: an event is on its way.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
