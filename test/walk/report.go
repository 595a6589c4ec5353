// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ourKinds are the kinds whose conditions a report has.
//
//nolint:gochecknoglobals // a constant list
var ourKinds = []schema.GroupVersionKind{
	{Group: "slurm.nebius.ai", Version: "v1", Kind: "SlurmCluster"},
	{Group: "slurm.nebius.ai", Version: "v1alpha1", Kind: "NodeSet"},
	{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "Controller"},
	{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "Accounting"},
	{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "RestApi"},
	{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "LoginSet"},
	{Group: "slinky.slurm.net", Version: "v1beta1", Kind: "NodeSet"},
}

// Report returns an error with what is not as it should be in a namespace: conditions, events and the last
// lines of the logs of containers that are not ready. It returns nil when there is nothing to report.
func (k *Kubernetes) Report(ctx context.Context, namespace string) error {
	// What went wrong may be that time is up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	var b strings.Builder
	k.Describe(ctx, &b, namespace, 12, false)
	if b.Len() == 0 {
		return nil
	}
	return errors.New("\n" + strings.TrimRight(b.String(), "\n"))
}

// Describe writes what a namespace looks like: so many lines of the log of each container, events, pods, and last, where
// one looks first, the conditions of our objects. Without all, it leaves out what is as it should be.
func (k *Kubernetes) Describe(ctx context.Context, w io.Writer, namespace string, lines int64, all bool) {
	section(w, "logs in "+namespace, func(w io.Writer) error { return k.logs(ctx, w, namespace, lines, all) })
	section(w, "events", func(w io.Writer) error { return k.events(ctx, w, namespace, all) })
	section(w, "pods", func(w io.Writer) error { return k.pods(ctx, w, namespace, all) })
	section(w, "conditions", func(w io.Writer) error { return k.conditions(ctx, w, namespace, all) })
}

func section(w io.Writer, title string, write func(io.Writer) error) {
	var b strings.Builder
	err := write(&b)
	if b.Len() > 0 || err != nil {
		fmt.Fprintf(w, "%s:\n%s", title, b.String())
	}
	if err != nil {
		fmt.Fprintf(w, "  (%v)\n", err)
	}
}

func (k *Kubernetes) conditions(ctx context.Context, w io.Writer, namespace string, all bool) error {
	var errs []error
	for _, gvk := range ourKinds {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(gvk)
		if err := k.List(ctx, objects, client.InNamespace(namespace)); err != nil {
			errs = append(errs, fmt.Errorf("listing %s: %w", gvk.Kind, err))
			continue
		}
		for _, o := range objects.Items {
			for _, c := range Conditions(&o) {
				if all || !asItShouldBe(c) {
					fmt.Fprintf(w, "  %s %s: %s\n", gvk.Kind, o.GetName(), sentence(c))
				}
			}
			if len(Conditions(&o)) == 0 {
				fmt.Fprintf(w, "  %s %s: no conditions: the operator has not looked at it\n", gvk.Kind, o.GetName())
			}
		}
	}
	return errors.Join(errs...)
}

// Conditions returns the conditions in the status of an object.
func Conditions(o *unstructured.Unstructured) []metav1.Condition {
	list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	var out []metav1.Condition
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { s, _, _ := unstructured.NestedString(m, key); return s }
		out = append(out, metav1.Condition{
			Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		})
	}
	return out
}

// asItShouldBe is about any condition of ours: Reconciling, Stalled and FieldsIgnored are good when False.
func asItShouldBe(c metav1.Condition) bool {
	switch c.Type {
	case "Reconciling", "Stalled", "FieldsIgnored", "ReservationCreated", "WorkersUnknown":
		return c.Status == metav1.ConditionFalse
	}
	return c.Status == metav1.ConditionTrue || c.Reason == "Disabled"
}

func sentence(c metav1.Condition) string {
	text := fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason)
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

func (k *Kubernetes) pods(ctx context.Context, w io.Writer, namespace string, all bool) error {
	var pods corev1.PodList
	if err := k.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for _, p := range pods.Items {
		if !all && IsReady(&p) {
			continue
		}
		fmt.Fprintf(w, "  %s on %s: %s%s\n", p.Name, cmp.Or(p.Spec.NodeName, "no node"), p.Status.Phase, troubles(&p))
	}
	return nil
}

// IsReady is true for a pod that is ready or has done its work.
func IsReady(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded {
		return true
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// troubles returns what keeps a pod from being ready.
func troubles(p *corev1.Pod) string {
	var b strings.Builder
	if p.DeletionTimestamp != nil {
		fmt.Fprintf(&b, ", being deleted since %s", p.DeletionTimestamp.Format(time.TimeOnly))
	}
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			fmt.Fprintf(&b, "; %s: %s", c.Type, c.Message)
		}
	}
	for _, s := range containerStatuses(p) {
		switch {
		case s.State.Waiting != nil:
			fmt.Fprintf(&b, "; %s waits: %s %s", s.Name, s.State.Waiting.Reason, s.State.Waiting.Message)
		case s.LastTerminationState.Terminated != nil:
			fmt.Fprintf(&b, "; %s was restarted %d times, last exit code %d", s.Name, s.RestartCount, s.LastTerminationState.Terminated.ExitCode)
		}
	}
	return b.String()
}

func containerStatuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func (k *Kubernetes) events(ctx context.Context, w io.Writer, namespace string, all bool) error {
	var events corev1.EventList
	if err := k.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	if !all {
		events.Items = slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.Type == corev1.EventTypeNormal })
		events.Items = events.Items[max(0, len(events.Items)-15):]
	}
	for _, e := range events.Items {
		fmt.Fprintf(w, "  %s %s %s %s: %s: %s\n", when(e).Format(time.TimeOnly), e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, strings.TrimSpace(e.Message))
	}
	return nil
}

func when(e corev1.Event) time.Time {
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}

func (k *Kubernetes) logs(ctx context.Context, w io.Writer, namespace string, lines int64, all bool) error {
	var pods corev1.PodList
	if err := k.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for _, p := range pods.Items {
		if !all && IsReady(&p) {
			continue
		}
		for _, s := range containerStatuses(&p) {
			if s.State.Running == nil && s.State.Terminated == nil && s.RestartCount == 0 {
				continue
			}
			previous := s.State.Running == nil && s.State.Terminated == nil
			text := k.log(ctx, &p, s.Name, lines, previous)
			if text != "" {
				fmt.Fprintf(w, "  %s, %s:\n%s", p.Name, s.Name, indent(text))
			}
		}
	}
	return nil
}

func (k *Kubernetes) log(ctx context.Context, p *corev1.Pod, container string, lines int64, previous bool) string {
	text, err := k.Clientset.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{
		Container: container, TailLines: &lines, Previous: previous,
	}).DoRaw(ctx)
	if err != nil {
		return fmt.Sprintf("(no log: %v)\n", err)
	}
	return string(text)
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}
