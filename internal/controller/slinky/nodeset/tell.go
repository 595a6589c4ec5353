// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// tell puts into the plan what the status and single pods show about it.
func tell(f facts, p *plan) {
	waiting, before := map[string]string{}, map[string]string{}
	for i := range f.pods {
		pod := &f.pods[i]
		if pod.Annotations[slinkyv1beta1.AnnotationRetired] != "" {
			before[pod.Name] = pod.Annotations[slinkyv1beta1.AnnotationPlan]
		}
		if c := workerpod.Condition(pod, slinkyv1beta1.PodConditionRetiring); c != nil && c.Reason == slinkyv1beta1.ReasonWaitingForJobs {
			waiting[pod.Name] = c.Message
		}
	}
	name := func(place workerpod.Place) string { return place.PodName(f.set) }
	steps, total := nodesetplan.Steps(f.planned(p.revision), p.workers, workerpod.DryRun(f.set), name, waiting)
	p.planned, p.texts = int32(total), map[string]string{} //nolint:gosec // a number of pods
	for _, s := range steps {
		p.steps = append(p.steps, slinkyv1beta1.NodeSetStep{Pod: s.Pod, Action: string(s.Action), Cause: string(s.Cause), Message: s.Message})
		p.texts[s.Pod] = s.Text()
		if text, retired := before[s.Pod]; retired && s.Brief {
			p.texts[s.Pod] = text // it has gone before that is written
		}
	}
}

// marks returns the annotations of ours that a pod is to have. A pod that is to go already has been so since it was marked first.
func (r *reconciler) marks(pod *corev1.Pod, cause workerpod.Cause, text string) map[string]string {
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

// annotate writes on the pods what is going to happen to them, where that has changed and was not written with a mark. When a plan has more
// steps than are shown, pods show them with their marks alone. Otherwise each step that is done would move others into what is shown, and a
// pod that is written to cannot be deleted in the version that was decided about.
func (r *reconciler) annotate(ctx context.Context, f facts, plan *plan, now nodesetplan.Plan) error {
	causes, told := now.Causes(f.workers.Pods), map[string]bool{}
	for _, retirement := range now.Retire {
		told[retirement.Pod] = true
	}
	for _, name := range now.Unretire {
		told[name] = true
	}
	whole := int(plan.planned) <= nodesetplan.MaxSteps
	var changed []*corev1.Pod
	for i := range f.pods {
		p := &f.pods[i]
		planned := causes[p.Name] != "" || (f.workers.Rolling || f.workers.Scheduled) && p.Labels[slinkyv1beta1.LabelRevisionHash] != plan.revision
		if p.Annotations[slinkyv1beta1.AnnotationPlan] != plan.texts[p.Name] && !told[p.Name] && p.DeletionTimestamp == nil && (whole || !planned) {
			changed = append(changed, p)
		}
	}
	return kube.SlowStart(len(changed), func(i int) error {
		p := changed[i]
		return wrap(r.mark(ctx, f.set, p, r.marks(p, causes[p.Name], plan.texts[p.Name])), "telling the plan to", f.set, p.Name)
	})
}
