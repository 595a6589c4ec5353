// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Explanation is why a worker is there, drained or not deleted.
type Explanation struct {
	// Pod and Namespace are the name and the namespace of the worker pod.
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	// SlurmNode is the name of its node in Slurm.
	SlurmNode string `json:"slurmNode"`
	// NodeSet and Cluster are the objects that it belongs to, and KubernetesNode is where it runs; empty when there is none.
	NodeSet        string `json:"nodeSet,omitempty"`
	Cluster        string `json:"cluster,omitempty"`
	KubernetesNode string `json:"kubernetesNode,omitempty"`
	// Sentences are the rest.
	Sentences []Sentence `json:"sentences"`
}

// Sentence is one fact.
type Sentence struct {
	// About is one of Pod, Slurm, Jobs, Going, Cordon, Eviction, Plan, NodeSet, Trust and Attention.
	About string `json:"about"`
	Text  string `json:"text"`
}

// Worker is what is known of a worker.
type Worker struct {
	Pod *corev1.Pod
	// NodeSet and Controller are nil when they are gone.
	NodeSet    *slinkyv1beta1.NodeSet
	Controller *slinkyv1beta1.Controller
}

// Explain returns what the objects show of a worker. Times are in UTC.
func Explain(w Worker) Explanation {
	out := Explanation{
		Pod: w.Pod.Name, Namespace: w.Pod.Namespace, SlurmNode: workerpod.SlurmNode(w.Pod),
		Cluster: w.Pod.Labels[slinkyv1beta1.LabelCluster], KubernetesNode: w.Pod.Spec.NodeName,
	}
	if w.NodeSet != nil {
		out.NodeSet = w.NodeSet.Name
	}
	say := func(about, text string) {
		if text != "" {
			out.Sentences = append(out.Sentences, Sentence{About: about, Text: text})
		}
	}
	say("Attention", attention(w.Pod))
	say("Pod", whyPodNotReady(w.Pod))
	say("Pod", whichRevision(w))
	say("Slurm", whatSlurmSays(w.Pod))
	say("Jobs", whyNoJobs(w.Pod))
	say("Going", whyGoing(w.Pod))
	say("Going", whyNotGone(w.Pod))
	say("Going", lastJob(w.Pod))
	say("Cordon", whoCordoned(w.Pod))
	say("Eviction", whetherEvicted(w.Pod))
	say("Plan", planned(w))
	for _, text := range nodeSetSays(w.NodeSet) {
		say("NodeSet", text)
	}
	for _, text := range trust(w.Controller) {
		say("Trust", text)
	}
	return out
}

func attention(p *corev1.Pod) string {
	c := workerpod.Condition(p, slinkyv1beta1.PodConditionNeedsAttention)
	if c == nil || c.Status != corev1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("It needs attention (%s): %s.", c.Reason, c.Message)
}

func whyPodNotReady(p *corev1.Pod) string {
	scheduled, ready := workerpod.Condition(p, corev1.PodScheduled), workerpod.Condition(p, corev1.PodReady)
	switch {
	case p.DeletionTimestamp != nil:
		return "The pod is being deleted; its grace period ends at " + instant(p.DeletionTimestamp.Time) + "."
	case p.Spec.NodeName == "" && scheduled != nil && scheduled.Message != "":
		return fmt.Sprintf("No Kubernetes node has been found for it (%s): %s.", scheduled.Reason, scheduled.Message)
	case p.Spec.NodeName == "":
		return "No Kubernetes node has been found for it yet."
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return "The pod has been ready since " + instant(ready.LastTransitionTime.Time) + "."
	case ready != nil && ready.Message != "":
		return fmt.Sprintf("The pod is %s and not ready (%s): %s.", p.Status.Phase, ready.Reason, ready.Message)
	}
	return fmt.Sprintf("The pod is %s and not ready.", p.Status.Phase)
}

func whichRevision(w Worker) string {
	if w.NodeSet == nil || w.NodeSet.Status.NodeSetHash == "" || w.Pod.Labels[slinkyv1beta1.LabelRevisionHash] == w.NodeSet.Status.NodeSetHash {
		return ""
	}
	return "It was made from an old revision of the NodeSet."
}

func whatSlurmSays(p *corev1.Pod) string {
	registered := workerpod.Condition(p, slinkyv1beta1.PodConditionRegistered)
	if registered == nil {
		return "Its node has not registered with Slurm yet."
	}
	if registered.Status == corev1.ConditionFalse {
		return "Slurm no longer has its node."
	}
	var states []string
	for _, kind := range node.AllConditions() {
		if state := strings.TrimPrefix(kind, node.ConditionPrefix); workerpod.ShowsState(p, state) {
			states = append(states, state)
		}
	}
	if len(states) == 0 {
		return "Slurm has its node; its state is not known."
	}
	return "Slurm's node is " + strings.Join(states, ", ") + "."
}

func whyNoJobs(p *corev1.Pod) string {
	if c := workerpod.Condition(p, slinkyv1beta1.PodConditionOutOfService); c != nil && c.Status == corev1.ConditionTrue {
		return fmt.Sprintf("It gets no new jobs (%s): %s.", c.Reason, c.Message)
	}
	takes := false
	for _, kind := range node.AllConditions() {
		switch state := strings.TrimPrefix(kind, node.ConditionPrefix); {
		case !workerpod.ShowsState(p, state) || state == "Completing":
		case state == "Idle" || state == "Allocated" || state == "Mixed":
			takes = true
		default:
			return "" // the state says it
		}
	}
	if takes {
		return "It can get new jobs."
	}
	return ""
}

func whyGoing(p *corev1.Pod) string {
	cause := p.Annotations[slinkyv1beta1.AnnotationRetired]
	why := map[string]string{
		"scale-in": "there are more workers than wanted", "update": "it was made from an old revision",
		"replace":      "it was made for another scaling mode or host name",
		"unregistered": "it runs, and Slurm does not have its node", "deletion": "its NodeSet is being deleted",
	}
	text, ok := why[cause]
	switch {
	case cause == "":
		return ""
	case ok:
		text = ", because " + text
	}
	since := ""
	if at := workerpod.Facts(p).RetiredAt; !at.IsZero() {
		since = ", since " + instant(at)
	}
	return fmt.Sprintf("It is being removed (%s%s)%s.", cause, since, text)
}

func whyNotGone(p *corev1.Pod) string {
	c := workerpod.Condition(p, slinkyv1beta1.PodConditionRetiring)
	switch {
	case p.Annotations[slinkyv1beta1.AnnotationRetired] == "":
		return ""
	case c == nil || c.Message == "":
		return "It is deleted when its Slurm node is drained and nothing runs there."
	}
	return fmt.Sprintf("It is not deleted yet (%s): %s.", c.Reason, c.Message)
}

// neverEnds is the year of annotation pod-deadline where a job has no time limit.
const neverEnds = 9999

func lastJob(p *corev1.Pod) string {
	facts := workerpod.Facts(p)
	switch {
	case !facts.DeadlineKnown:
		return ""
	case facts.Deadline.Year() == neverEnds:
		return "A job on it has no time limit or is suspended."
	}
	return "Its last job ends no later than " + instant(facts.Deadline) + "."
}

func whetherEvicted(p *corev1.Pod) string {
	if p.Labels[slinkyv1beta1.LabelPodProtect] != "true" {
		return "Kubernetes may evict the pod."
	}
	controller := slinkyv1beta1.Controller{}
	controller.Name = p.Labels[slinkyv1beta1.LabelCluster]
	return "Kubernetes does not evict the pod: PodDisruptionBudget " + controller.WorkerDisruptionBudgetName() +
		" protects it until Slurm reports its node as drained."
}

func planned(w Worker) string {
	if w.NodeSet != nil {
		for _, step := range w.NodeSet.Status.Plan {
			if step.Pod == w.Pod.Name {
				return "The NodeSet plans: " + stepText(step) + "."
			}
		}
	}
	if text := w.Pod.Annotations[slinkyv1beta1.AnnotationPlan]; text != "" {
		return "The NodeSet plans: " + text + "."
	}
	return ""
}

func stepText(step slinkyv1beta1.NodeSetStep) string {
	text := step.Action
	if step.Cause != "" {
		text += " (" + step.Cause + ")"
	}
	if step.Message != "" {
		text += ", " + step.Message
	}
	return text
}

func nodeSetSays(n *slinkyv1beta1.NodeSet) (out []string) {
	if n == nil {
		return []string{"The pod belongs to no NodeSet."}
	}
	if n.DeletionTimestamp != nil {
		out = append(out, "NodeSet "+n.Name+" is being deleted.")
	}
	if workerpod.DryRun(n) {
		out = append(out, "The operator does nothing to its workers: NodeSet "+n.Name+" has annotation "+slinkyv1beta1.AnnotationDryRun+".")
	}
	for _, kind := range []string{slinkyv1beta1.ConditionStalled, slinkyv1beta1.ConditionWorkersUnknown, slinkyv1beta1.ConditionDrainsByChecksPaused} {
		if c := meta.FindStatusCondition(n.Status.Conditions, kind); c != nil && c.Status == "True" {
			out = append(out, fmt.Sprintf("Condition %s of NodeSet %s is True (%s): %s.", kind, n.Name, c.Reason, c.Message))
		}
	}
	return out
}

// trust returns whether the operator relies on what Slurm reports.
func trust(c *slinkyv1beta1.Controller) (out []string) {
	if c == nil {
		return []string{"The pod belongs to no Controller."}
	}
	reachable := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
	switch {
	case reachable == nil:
		out = append(out, "It is not known whether Slurm answers. Until it does, the operator drains, undrains and deletes no worker that might run jobs.")
	case reachable.Status != "True":
		out = append(out, fmt.Sprintf("The operator does not trust Slurm's answers (%s): %s. "+
			"Until it does, it drains, undrains and deletes no worker that might run jobs.", reachable.Reason, reachable.Message))
	default:
		out = append(out, "Slurm answers, and the operator trusts the answers.")
	}
	if paused := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionDestructiveActionsPaused); paused != nil && paused.Status == "True" {
		out = append(out, fmt.Sprintf("Deletions of workers wait (%s): %s.", paused.Reason, paused.Message))
	}
	return out
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
