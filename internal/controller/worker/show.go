// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	nodesets "github.com/coxswain-hpc/coxswain/internal/controller/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// show puts Slurm's state on the pod: one condition for each state that holds, and for a retired worker one that says what
// it waits for. Only these are written, and only when they differ.
func (r *reconciler) show(ctx context.Context, s *scope) error {
	pod := s.pod
	wanted := wantedConditions(pod, s.worker, s.action)
	if same(pod, wanted) || !r.turns.take(client.ObjectKeyFromObject(pod), s.most, false) {
		return nil
	}
	status := corev1ac.PodStatus()
	for _, c := range wanted {
		since := metav1.NewTime(r.Clock.Now())
		if have := nodesets.Condition(pod, c.Type); have != nil && have.Status == c.Status {
			since = have.LastTransitionTime
		}
		applied := corev1ac.PodCondition().WithType(c.Type).WithStatus(c.Status).WithMessage(c.Message).WithLastTransitionTime(since)
		if c.Reason != "" {
			applied = applied.WithReason(c.Reason)
		}
		status = status.WithConditions(applied)
	}
	apply := corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID).WithStatus(status)
	if err := component.IgnoreGone(r.Client.Status().Apply(ctx, apply, client.FieldOwner(owner), client.ForceOwnership)); err != nil {
		return fmt.Errorf("writing the Slurm state of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.written.note(pod, versionOf(apply))
	if now, before := attention(s.action), nodesets.Condition(pod, slinkyv1beta1.PodConditionNeedsAttention); now != nil &&
		(before == nil || before.Reason != now.Reason) {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, now.Reason, "Look", "%s", now.Message)
	}
	return nil
}

// attention is the condition that names all troubles; nil when there are none.
func attention(action nodeset.Action) *corev1.PodCondition {
	if len(action.Troubles) == 0 {
		return nil
	}
	messages := make([]string, 0, len(action.Troubles))
	for _, t := range action.Troubles {
		messages = append(messages, t.Message)
	}
	return &corev1.PodCondition{
		Type: slinkyv1beta1.PodConditionNeedsAttention, Status: corev1.ConditionTrue,
		Reason: action.Troubles[0].Reason, Message: strings.Join(messages, "\n"),
	}
}

// ourConditions are the types of all conditions that this controller writes.
func ourConditions() []corev1.PodConditionType {
	types := []corev1.PodConditionType{nodesets.RetiringCondition, slinkyv1beta1.PodConditionNeedsAttention}
	for _, kind := range node.AllConditions() {
		types = append(types, corev1.PodConditionType(kind))
	}
	return types
}

// wantedConditions are all conditions of ours that the pod is to have. What Slurm said last stays while it says nothing.
func wantedConditions(pod *corev1.Pod, w nodeset.Worker, action nodeset.Action) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, kind := range ourConditions() {
		have := nodesets.Condition(pod, kind)
		switch {
		case kind == slinkyv1beta1.PodConditionNeedsAttention:
			if c := attention(action); c != nil {
				out = append(out, *c)
			}
		case kind == nodesets.RetiringCondition:
			switch {
			case w.Pod.Terminating && have != nil: // nobody needs to be told
				out = append(out, *have)
			case w.Pod.Retired != "" && !w.Pod.Terminating:
				out = append(out, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reasonOf(w.Pod.Retired), Message: action.Message})
			}
		case !action.ConditionsKnown:
			if have != nil {
				out = append(out, corev1.PodCondition{Type: kind, Status: have.Status, Message: have.Message})
			}
		case slices.Contains(action.Conditions, string(kind)):
			out = append(out, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Message: w.Reason.Text})
		}
	}
	return out
}

// reasonOf is the cause in the form of a condition's reason: ScaleIn for scale-in.
func reasonOf(cause nodeset.Cause) string {
	var b strings.Builder
	for word := range strings.SplitSeq(string(cause), "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// same says whether the pod has exactly these conditions of ours.
func same(pod *corev1.Pod, wanted []corev1.PodCondition) bool {
	for _, kind := range ourConditions() {
		have := nodesets.Condition(pod, kind)
		i := slices.IndexFunc(wanted, func(c corev1.PodCondition) bool { return c.Type == kind })
		if (i >= 0) != (have != nil) {
			return false
		}
		if i >= 0 && (have.Status != wanted[i].Status || have.Reason != wanted[i].Reason || have.Message != wanted[i].Message) {
			return false
		}
	}
	return true
}
