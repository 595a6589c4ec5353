// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// Outcome is the facts, the plan and the observation of one pass over an object.
type Outcome[F any, P Planned, O any] struct {
	Facts F
	// Plan is what was decided. What only the API server could find wrong has joined its problems.
	Plan P
	Seen O
	// Driven is true if the plan is carried out: it had no problems, and nothing failed.
	Driven bool
	// Now is the time of the pass.
	Now time.Time
}

// Report is what a pass reports of an object, beside the fields of its status.
type Report struct {
	// Conditions are those of the kind's own, beside the summary. The kit fills in their observedGeneration.
	Conditions []metav1.Condition
	// Drop are the types of conditions that no longer apply.
	Drop []string
	// Parts are what has to be ready for the object to be ready. They do not count while the plan has problems: nothing was applied, so
	// that what runs is not what the spec asks for in any case.
	Parts []kube.Part
	// ReadyReason is why the object is ready when it is; empty means Available.
	ReadyReason string
	// Problems are what went wrong after the plan was made, beside the problems of the plan.
	Problems problem.List
	// Events are recorded once, beside those of the summary.
	Events []Event
	// Stands is true if nothing new is known: the object's conditions stay as they are.
	Stands bool
	// Again is when the object is to be looked at although nothing changes; zero when it is not.
	Again time.Time
}

// Event is an event about the object of a pass.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason and Action are in CamelCase, Note is a sentence.
	Reason, Action, Note string
}

// SetCondition adds a condition.
func (r *Report) SetCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	r.Conditions = append(r.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// write puts a report into the conditions of an object and records what is new as events. failed is what kept the plan from being
// carried out or the object from being observed.
func (b *Base) write(obj Object, plan *Plan, report Report, now time.Time, failed, unobserved error) {
	if report.Stands {
		return
	}
	conditions := obj.GetConditions()
	for _, c := range report.Conditions {
		c.ObservedGeneration = obj.GetGeneration()
		kube.SetCondition(&conditions, c, now)
	}
	for _, kind := range report.Drop {
		meta.RemoveStatusCondition(&conditions, kind)
	}
	problems := append(append(problem.List(nil), plan.Problems...), report.Problems...)
	parts := report.Parts
	switch {
	case len(problems) > 0:
		parts = nil // The mistakes come first.
	case unobserved != nil:
		parts = append(parts, kube.Part{Name: "workload", Reason: kube.ReasonWaiting, Message: "its state could not be read"})
	}
	if failed = kube.IgnoreLeaving(failed); apierrors.IsForbidden(failed) {
		// The spec is not wrong then, so only this shows why nothing happens.
		parts = append(parts, kube.Part{Name: "objects", Reason: kube.ReasonApplyFailed, Message: problem.OneLine(failed.Error())})
	}
	kube.Report(b.Recorder, obj, &conditions, kube.Summary{
		Generation: obj.GetGeneration(), Now: now, Parts: parts, ReadyReason: report.ReadyReason, Problems: problems,
	})
	for _, e := range report.Events {
		b.Recorder.Eventf(obj, nil, e.Type, e.Reason, e.Action, "%s", kube.Note(e.Note))
	}
	obj.SetConditions(conditions)
}

// maxWords is how many bytes of a termination message a condition repeats.
const maxWords = 512

// LastWords is the last termination message of a container that is not ready, on one line. Of several pods the first by name counts. It
// is empty when no such container has one.
func LastWords(pods []corev1.Pod, container string) string {
	pod, said := "", ""
	for i := range pods {
		p := &pods[i]
		if pod != "" && pod < p.Name || p.DeletionTimestamp != nil {
			continue
		}
		if words := Ended(p.Status.ContainerStatuses, container); words != "" {
			pod, said = p.Name, words
		}
	}
	if said == "" {
		return ""
	}
	return fmt.Sprintf("; container %s of %s ended: %s", container, pod, strings.Join(strings.FieldsFunc(said, isLineEnd), "; "))
}

// Ended is the termination message of a container that is not ready; empty for none.
func Ended(statuses []corev1.ContainerStatus, container string) string {
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 || statuses[i].Ready {
		return ""
	}
	for _, ended := range []*corev1.ContainerStateTerminated{statuses[i].State.Terminated, statuses[i].LastTerminationState.Terminated} {
		if ended != nil && strings.TrimSpace(ended.Message) != "" {
			return strings.ToValidUTF8(ended.Message[:min(len(ended.Message), maxWords)], "")
		}
	}
	return ""
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' }

// AppendLastWords adds the last words of a container of the selected pods to a part that is not ready.
func (b *Base) AppendLastWords(ctx context.Context, part *kube.Part, namespace string, selector client.MatchingLabels, container string) error {
	if part.Ready {
		return nil
	}
	var pods corev1.PodList
	if err := b.Client.List(ctx, &pods, client.InNamespace(namespace), selector, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the pods with container %s in %s: %w", container, namespace, err)
	}
	part.Message += LastWords(pods.Items, container)
	return nil
}
