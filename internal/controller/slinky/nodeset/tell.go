// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	renderworker "github.com/coxswain-hpc/coxswain/internal/render/worker"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// tell puts the plan into the status, and returns what it says about single pods.
func tell(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, facts plans.Input, plan plans.Plan) map[string]string {
	waiting, before := map[string]string{}, map[string]string{}
	for i := range pods {
		if pods[i].Annotations[slinkyv1beta1.AnnotationRetired] != "" {
			before[pods[i].Name] = pods[i].Annotations[slinkyv1beta1.AnnotationPlan]
		}
		if c := workerpod.Condition(&pods[i], slinkyv1beta1.PodConditionRetiring); c != nil {
			waiting[pods[i].Name] = c.Message
		}
	}
	steps, total := plans.Steps(facts, plan, workerpod.DryRun(n), func(p plans.Place) string { return renderworker.Identity(p).PodName(n) }, waiting)
	n.Status.Plan, n.Status.Planned = nil, int32(total) //nolint:gosec // a number of pods
	texts := map[string]string{}
	for _, s := range steps {
		n.Status.Plan = append(n.Status.Plan, slinkyv1beta1.NodeSetStep{Pod: s.Pod, Action: string(s.Deed), Cause: string(s.Cause), Message: s.Message})
		texts[s.Pod] = s.Text()
		if text, retired := before[s.Pod]; retired && s.Brief() {
			texts[s.Pod] = text // it has gone before that is written
		}
	}
	return texts
}

// marks are the annotations of ours that a pod is to have. One that is to go already has been so since it was marked first.
func (r *reconciler) marks(pod *corev1.Pod, cause plans.Cause, text string) map[string]string {
	out := map[string]string{}
	if cause != "" {
		out[slinkyv1beta1.AnnotationRetired], out[slinkyv1beta1.AnnotationPodCordon] = string(cause), "true"
		out[slinkyv1beta1.AnnotationRetiredAt] = r.Clock.Now().UTC().Format(time.RFC3339)
		if pod.Annotations[slinkyv1beta1.AnnotationRetired] != "" {
			out[slinkyv1beta1.AnnotationRetiredAt] = pod.Annotations[slinkyv1beta1.AnnotationRetiredAt]
		}
	}
	if text != "" {
		out[slinkyv1beta1.AnnotationPlan] = text
	}
	return out
}

// annotate tells the pods what is going to happen to them, where that has changed and was not told with a mark. Of a plan of
// more steps than are told, pods are told with their marks alone: each step that is done would move others into what is told, and
// a pod that is written to cannot be deleted in the version that was decided about.
func (r *reconciler) annotate(ctx context.Context, n *slinkyv1beta1.NodeSet, pods []corev1.Pod, facts plans.Input, plan plans.Plan, texts map[string]string) error {
	causes, told := plan.Causes(facts.Pods), map[string]bool{}
	for _, retirement := range plan.Retire {
		told[retirement.Pod] = true
	}
	for _, name := range plan.Reprieve {
		told[name] = true
	}
	whole := int(n.Status.Planned) <= plans.MostSteps
	var changed []*corev1.Pod
	for i := range pods {
		p := &pods[i]
		planned := causes[p.Name] != "" || (facts.Rolling || facts.Scheduled) && p.Labels[slinkyv1beta1.LabelRevisionHash] != facts.Revision
		if p.Annotations[slinkyv1beta1.AnnotationPlan] != texts[p.Name] && !told[p.Name] && p.DeletionTimestamp == nil && (whole || !planned) {
			changed = append(changed, p)
		}
	}
	return kube.SlowStart(len(changed), func(i int) error {
		p := changed[i]
		return wrap(r.mark(ctx, n, p, r.marks(p, causes[p.Name], texts[p.Name])), "telling the plan to", n, p.Name)
	})
}
