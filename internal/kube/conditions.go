// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// The condition types by which kubectl wait, Argo CD, Flux and Helm judge any object
// (https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus).
const (
	// ConditionReady is true when everything is as in the spec.
	ConditionReady = "Ready"
	// ConditionReconciling is true while something becomes ready by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when nothing will change until a person acts.
	ConditionStalled = "Stalled"
)

// The reasons of the summary conditions while there is nothing to report; otherwise their reason is that of the first part or problem.
// They have the values of the constants in api/.
const (
	// ReasonAvailable is why Ready is true.
	ReasonAvailable = "Available"
	// ReasonReconciled is why Reconciling and Stalled are false.
	ReasonReconciled = "Reconciled"
	// ReasonWaiting is the reason of a part that has not reported yet.
	ReasonWaiting = "Waiting"
	// ReasonRollingOut is the reason of a part whose pods are being created, replaced or removed.
	ReasonRollingOut = "RollingOut"
	// ReasonPodsNotReady is the reason of a part that lacks ready pods.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonApplyFailed is the reason of a part that the API server refuses to store.
	ReasonApplyFailed = "ApplyFailed"
)

// noteLength is the longest note of an event that the API server accepts.
const noteLength = 1024

// SetCondition puts c into the list and reports whether anything but the time changed. lastTransitionTime is now if the
// status changed, and stays otherwise. now is when the decision was made; conditions have whole seconds.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition, now time.Time) bool {
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	return meta.SetStatusCondition(conditions, c)
}

// Summary is what the conditions Ready, Reconciling and Stalled are computed from.
type Summary struct {
	// Generation is that of the object the reconcile has read.
	Generation int64
	// Now is the time of the reconcile.
	Now time.Time
	// Parts are the components, or conditions, that have to be ready for the object to be ready.
	Parts []Part
	// ReadyReason is why Ready is true; empty means ReasonAvailable.
	ReadyReason string
	// Problems are the mistakes found. Those that wait for something make the object not ready, the others stall it.
	Problems problem.List
}

// Part is one thing that has to be ready for the whole to be ready.
type Part struct {
	// Name is the part: "controller", "workers", "configuration".
	Name string
	// Ready is true if the part is ready. If so, nothing else matters.
	Ready bool
	// Stalled is true if it will not become ready by itself.
	Stalled bool
	// Reason is an API constant in CamelCase.
	Reason string
	// Message is what is missing, in a sentence.
	Message string
}

// PartOf is the part that a component object stands for, judged by its own summary conditions. Conditions computed from an older
// generation, or none at all, mean that it is still becoming ready.
func PartOf(name string, generation int64, conditions []metav1.Condition) Part {
	part := Part{Name: name, Reason: ReasonWaiting, Message: "has not reported on its latest spec yet"}
	ready := meta.FindStatusCondition(conditions, ConditionReady)
	if ready == nil || ready.ObservedGeneration < generation {
		return part
	}
	stalled := meta.FindStatusCondition(conditions, ConditionStalled)
	part.Ready = ready.Status == metav1.ConditionTrue
	part.Stalled = stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.ObservedGeneration >= generation
	part.Reason, part.Message = ready.Reason, ready.Message
	return part
}

// Write puts the three conditions into the list. All three are always there, so that "kubectl wait" can ask for any.
func (s Summary) Write(conditions *[]metav1.Condition) {
	var stalled, moving problem.List
	for _, p := range s.open() {
		if p.Waiting {
			moving = append(moving, p)
		} else {
			stalled = append(stalled, p)
		}
	}
	all := append(slices.Clip(stalled), moving...)
	s.set(conditions, ConditionReady, len(all) == 0, all, cmp.Or(s.ReadyReason, ReasonAvailable), s.readyMessage())
	s.set(conditions, ConditionReconciling, len(moving) > 0, moving, ReasonReconciled, "nothing is in progress")
	s.set(conditions, ConditionStalled, len(stalled) > 0, stalled, ReasonReconciled, "nothing needs attention")
}

// open is everything that keeps the object from being ready, parts in the form of problems.
func (s Summary) open() problem.List {
	open := append(problem.List(nil), s.Problems...)
	for _, part := range s.Parts {
		if !part.Ready {
			open = append(open, problem.Problem{Path: part.Name, Reason: part.Reason, Message: part.Message, Waiting: !part.Stalled})
		}
	}
	return open
}

func (s Summary) readyMessage() string {
	if len(s.Parts) == 0 {
		return "everything matches the spec"
	}
	messages := make([]string, len(s.Parts))
	for i, part := range s.Parts {
		messages[i] = problem.Problem{Path: part.Name, Message: part.Message}.Error()
		if part.Message == "" {
			messages[i] = part.Name + " is ready"
		}
	}
	return strings.Join(messages, "; ")
}

// set writes one condition: true or false, explained by the open list, or by the idle reason when that is empty.
func (s Summary) set(conditions *[]metav1.Condition, kind string, status bool, open problem.List, idleReason, idleMessage string) {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, ObservedGeneration: s.Generation, Reason: idleReason, Message: idleMessage}
	if status {
		c.Status = metav1.ConditionTrue
	}
	if len(open) > 0 {
		c.Reason, c.Message = open.Reason(), open.Message()
		if c.Reason == "" {
			c.Reason = ReasonWaiting
		}
	}
	SetCondition(conditions, c, s.Now)
}

// Report writes the summary into the conditions of obj and records an event about what is new. That is a Warning when problems that
// need a person appear or change, and a Normal one when the object becomes ready. It is the one place where users' mistakes become
// visible; at rest it does nothing. conditions are those of obj's status, as they were read.
func Report(recorder events.EventRecorder, obj client.Object, conditions *[]metav1.Condition, s Summary) {
	wasStalled, wasReady := statusOf(*conditions, ConditionStalled), statusOf(*conditions, ConditionReady)
	s.Write(conditions)
	stalled, ready := statusOf(*conditions, ConditionStalled), statusOf(*conditions, ConditionReady)
	if stalled.Status == metav1.ConditionTrue && (stalled.Status != wasStalled.Status || stalled.Message != wasStalled.Message) {
		recorder.Eventf(obj, nil, corev1.EventTypeWarning, stalled.Reason, "Reconcile", "%s", Note(stalled.Message))
	}
	if ready.Status == metav1.ConditionTrue && wasReady.Status != metav1.ConditionTrue {
		recorder.Eventf(obj, nil, corev1.EventTypeNormal, ready.Reason, "Reconcile", "%s", Note(ready.Message))
	}
}

// statusOf returns the condition of a type, or an empty one.
func statusOf(conditions []metav1.Condition, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Note cuts a message to the length that the API server accepts as the note of an event.
func Note(message string) string {
	if len(message) > noteLength {
		return strings.ToValidUTF8(message[:noteLength-3], "") + "..."
	}
	return message
}
