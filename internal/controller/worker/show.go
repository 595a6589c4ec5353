// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// show puts Slurm's state on the pod: one condition for each state that holds, and one with what a retired worker waits for. The protection
// of a worker on which nothing runs any more ends by the same write. That is the most frequent change, and the API server takes labels of a
// pod together with its status. Only what differs is written.
func (r *reconciler) show(ctx context.Context, s *scope) error {
	pod := s.pod
	patch := showing(s, r.Clock.Now())
	if patch == nil || !r.writes.take(client.ObjectKeyFromObject(pod), s.maxWrites, false) {
		return nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding the Slurm state of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	live := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = r.Client.Status().Patch(ctx, live, client.RawPatch(types.StrategicMergePatchType, text), client.FieldOwner(owner))
	if reconcile.IgnoreGone(err) != nil && !another(err) {
		return fmt.Errorf("writing the Slurm state of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.Applier.Changed(pod, live)
	if now, before := attention(s.action), workerpod.Condition(pod, slinkyv1beta1.PodConditionNeedsAttention); now != nil &&
		(before == nil || before.Reason != now.Reason) {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, now.Reason, "Look", "%s", now.Message)
	}
	return nil
}

// another reports whether a patch was refused because a pod of another UID has the name by now.
func another(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// showing returns the strategic merge patch that shows what differs; nil when nothing does.
func showing(s *scope, now time.Time) map[string]any {
	metadata := map[string]any{"uid": s.pod.UID}
	patch := map[string]any{"metadata": metadata}
	_, protected := s.pod.Labels[slinkyv1beta1.LabelPodProtect]
	unprotect := protected && s.action.Marks.Protected == node.No
	if unprotect {
		// The version ensures that no other operator, which may know more, has protected it anew since it was read.
		metadata["labels"], metadata["resourceVersion"] = map[string]any{slinkyv1beta1.LabelPodProtect: nil}, s.version
	}
	conditions := differing(s.pod, wantedConditions(s.pod, s.worker, s.action), now)
	if len(conditions) > 0 {
		patch["status"] = map[string]any{"conditions": conditions}
	}
	if !unprotect && len(conditions) == 0 {
		return nil
	}
	return patch
}

// attention returns the condition that names all troubles; nil when there are none.
func attention(action workerplan.Action) *corev1.PodCondition {
	if len(action.Shown.Troubles) == 0 {
		return nil
	}
	messages := make([]string, 0, len(action.Shown.Troubles))
	for _, t := range action.Shown.Troubles {
		messages = append(messages, t.Message)
	}
	return &corev1.PodCondition{
		Type: slinkyv1beta1.PodConditionNeedsAttention, Status: corev1.ConditionTrue,
		Reason: action.Shown.Troubles[0].Reason, Message: strings.Join(messages, "\n"),
	}
}

// ourConditions returns the types of all conditions that this controller writes.
func ourConditions() []corev1.PodConditionType {
	types := []corev1.PodConditionType{slinkyv1beta1.PodConditionRetiring, slinkyv1beta1.PodConditionNeedsAttention, slinkyv1beta1.PodConditionOutOfService,
		slinkyv1beta1.PodConditionRegistered}
	for _, kind := range node.AllConditions() {
		types = append(types, corev1.PodConditionType(kind))
	}
	return types
}

// completing is the type of the condition of a node on which jobs end.
const completing corev1.PodConditionType = node.ConditionPrefix + "Completing"

// wantedConditions returns all conditions of ours that the pod is to have. Slurm's last state stays while it does not answer.
func wantedConditions(pod *corev1.Pod, w workerplan.Worker, action workerplan.Action) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, kind := range ourConditions() {
		have := workerpod.Condition(pod, kind)
		switch {
		case kind == slinkyv1beta1.PodConditionNeedsAttention:
			switch c := attention(action); {
			case c != nil:
				out = append(out, *c)
			case have != nil && w.Registered == node.Unknown && !w.Pod.Terminating && workerplan.TroubleBySlurm(have.Reason):
				out = append(out, corev1.PodCondition{Type: kind, Status: have.Status, Reason: have.Reason, Message: have.Message})
			}
		case kind == slinkyv1beta1.PodConditionRetiring:
			switch {
			case w.Pod.Terminating && have != nil: // nobody needs to know
				out = append(out, *have)
			case w.Pod.Retired != "" && !w.Pod.Terminating:
				out = append(out, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: retiringReason(w, action), Message: action.Shown.Message + " (" + action.Shown.Why + ")"})
			}
		case kind == slinkyv1beta1.PodConditionOutOfService && action.Shown.ConditionsKnown:
			if o := action.Shown.OutOfService; o.Reason != "" {
				out = append(out, corev1.PodCondition{
					Type: kind, Status: corev1.ConditionTrue, Reason: o.Reason, Message: o.Message, LastTransitionTime: metav1.NewTime(o.Since),
				})
			}
		case kind == slinkyv1beta1.PodConditionRegistered && action.Shown.ConditionsKnown:
			if c := registered(have, w); c != nil {
				out = append(out, *c)
			}
		case !action.Shown.ConditionsKnown:
			if have != nil {
				out = append(out, corev1.PodCondition{Type: kind, Status: have.Status, Reason: have.Reason, Message: have.Message})
			}
		case slices.Contains(action.Shown.Conditions, string(kind)):
			c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Message: w.Reason.Text}
			if kind == completing {
				c.LastTransitionTime = metav1.NewTime(w.Completing) // as in other messages
			}
			out = append(out, c)
		}
	}
	return out
}

// registered returns the condition that remembers that Slurm has had the node of the worker; nil while it never has. The record of an
// earlier worker is DOWN.
func registered(have *corev1.PodCondition, w workerplan.Worker) *corev1.PodCondition {
	c := corev1.PodCondition{Type: slinkyv1beta1.PodConditionRegistered, Status: corev1.ConditionTrue}
	switch {
	case w.Registered == node.Yes && (have != nil || w.Pod.Phase == string(corev1.PodRunning) && w.State.Down() != node.Yes):
		return &c
	case w.Registered == node.No && have != nil:
		c.Status, c.Message = corev1.ConditionFalse, "Slurm no longer has the node"
		return &c
	}
	return nil
}

// retiringReason returns the typed form of what a retired worker waits for: the NodeSet reads it, and never the message.
func retiringReason(w workerplan.Worker, action workerplan.Action) string {
	if action.Shown.WaitsForJobs {
		return slinkyv1beta1.ReasonWaitingForJobs
	}
	return reasonOf(w.Pod.Retired)
}

// reasonOf returns the cause in the form of a condition's reason: ScaleIn for scale-in.
func reasonOf(cause workerpod.Cause) string {
	var b strings.Builder
	for word := range strings.SplitSeq(string(cause), "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// differing returns the conditions of ours that the pod does not have in this form, and those that it is not to have.
func differing(pod *corev1.Pod, wanted []corev1.PodCondition, now time.Time) []map[string]any {
	var out []map[string]any
	for _, kind := range ourConditions() {
		have := workerpod.Condition(pod, kind)
		i := slices.IndexFunc(wanted, func(c corev1.PodCondition) bool { return c.Type == kind })
		switch {
		case i < 0 && have == nil:
		case i < 0:
			out = append(out, map[string]any{"type": kind, "$patch": "delete"})
		case have == nil || have.Status != wanted[i].Status || have.Reason != wanted[i].Reason || have.Message != wanted[i].Message:
			want := wanted[i]
			c := map[string]any{"type": kind, "status": want.Status}
			var before corev1.PodCondition
			if have != nil {
				before = *have
			}
			put(c, "reason", before.Reason, want.Reason)
			put(c, "message", before.Message, want.Message)
			if have == nil || have.Status != want.Status {
				c["lastTransitionTime"] = want.LastTransitionTime
				if want.LastTransitionTime.IsZero() {
					c["lastTransitionTime"] = metav1.NewTime(now)
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// put puts a text into a patch; null takes off what was there before.
func put(patch map[string]any, name, before, text string) {
	switch {
	case text != "":
		patch[name] = text
	case before != "":
		patch[name] = nil
	}
}
