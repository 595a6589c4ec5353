// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/worker/workerplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// owner is the field manager of what this controller puts on pods, apart from what others put on them.
const owner = kube.FieldManager + "-worker"

// marks are labels and annotations of ours.
type marks struct{ labels, annotations map[string]string }

// mark puts our labels and annotations on the pod, all at once, since an apply removes what it leaves out. It reports whether the pod has
// them: it does not while it waits for a permit, or has changed meanwhile. The protection is put on here, before a job can start, and is
// taken off when the state is shown.
func (r *reconciler) mark(ctx context.Context, s *scope) (bool, error) {
	pod := s.pod
	have := marksOf(pod)
	want := have.with(s.action)
	opening := workerpod.Opening{At: r.Clock.Now(), By: r.memory.announced.process}
	if s.action.Announce {
		want.annotations[slinkyv1beta1.AnnotationOpening] = opening.String()
	}
	if name := workerpod.SlurmNode(pod); pod.Spec.HostNetwork && name != "" && len(name) <= validation.LabelValueMaxLength {
		want.labels[slinkyv1beta1.LabelPodHostname] = name // which nobody knew before the pod had its Kubernetes node
	}
	_, is := have.labels[slinkyv1beta1.LabelPodProtect]
	_, wanted := want.labels[slinkyv1beta1.LabelPodProtect]
	if !wanted {
		delete(have.labels, slinkyv1beta1.LabelPodProtect)
	}
	if have.equal(want) {
		return true, nil
	}
	// Jobs may start on a node that somebody else has undrained.
	used := s.action.StateChange.Opens()
	limit := s.maxWrites
	if used {
		limit = maxWrites // or the undrains that are under way would slow down the others
	}
	if !r.writes.take(client.ObjectKeyFromObject(pod), limit, wanted && !is && !used) {
		return false, nil
	}
	marks := kube.Marks{Labels: want.labels, Annotations: want.annotations}
	if !wanted || s.action.Announce {
		// An apply removes what it leaves out: a former leader, who has seen less, would take off the protection that another one has put on
		// since. And whoever lets jobs onto the node must have seen what all others have announced.
		marks.ResourceVersion = pod.ResourceVersion
	}
	marked, err := kube.Mark(ctx, r.Client, pod, owner, marks)
	switch {
	case err != nil && reconcile.IgnoreGone(err) == nil:
		s.action.Again = workerpod.Sooner(s.action.Again, r.Clock.Now().Add(time.Second))
		return false, nil
	case err != nil:
		return false, err
	}
	s.version = marked.ResourceVersion
	r.Applier.Changed(pod, marked)
	if s.action.Announce {
		s.worker.Announced = opening.At
	}
	return true, nil
}

// marksOf reads our marks from a pod. Others set the cordon annotation, too: it is ours when our own mark is there.
func marksOf(pod *corev1.Pod) marks {
	m := marks{labels: map[string]string{}, annotations: map[string]string{}}
	keep := func(to, from map[string]string, key string) {
		if v, ok := from[key]; ok {
			to[key] = v
		}
	}
	keep(m.labels, pod.Labels, slinkyv1beta1.LabelPodProtect)
	if pod.Spec.HostNetwork {
		keep(m.labels, pod.Labels, slinkyv1beta1.LabelPodHostname)
	}
	for _, key := range []string{
		slinkyv1beta1.AnnotationNodeCordoned, slinkyv1beta1.AnnotationOpening, slinkyv1beta1.AnnotationPodDeadline, slinkyv1beta1.AnnotationTopologySpec,
	} {
		keep(m.annotations, pod.Annotations, key)
	}
	if _, ours := m.annotations[slinkyv1beta1.AnnotationNodeCordoned]; ours {
		keep(m.annotations, pod.Annotations, slinkyv1beta1.AnnotationPodCordon)
	}
	return m
}

func (m marks) equal(o marks) bool {
	return maps.Equal(m.labels, o.labels) && maps.Equal(m.annotations, o.annotations)
}

// with returns the marks that the action asks for. What it does not know stays.
func (m marks) with(action workerplan.Action) marks {
	out := marks{labels: maps.Clone(m.labels), annotations: maps.Clone(m.annotations)}
	set := func(to map[string]string, key string, wanted node.Answer) {
		switch wanted {
		case node.Yes:
			to[key] = "true"
		case node.No:
			delete(to, key)
		case node.Unknown:
		}
	}
	set(out.labels, slinkyv1beta1.LabelPodProtect, action.Marks.Protected)
	set(out.annotations, slinkyv1beta1.AnnotationNodeCordoned, action.Marks.NodeMark)
	set(out.annotations, slinkyv1beta1.AnnotationPodCordon, action.Marks.NodeMark)
	if action.Marks.Topology != nil {
		out.annotations[slinkyv1beta1.AnnotationTopologySpec] = *action.Marks.Topology
	}
	switch {
	case !action.Marks.DeadlineKnown:
	case action.Marks.Deadline.IsZero():
		delete(out.annotations, slinkyv1beta1.AnnotationPodDeadline)
	default:
		out.annotations[slinkyv1beta1.AnnotationPodDeadline] = action.Marks.Deadline.UTC().Format(time.RFC3339)
	}
	return out
}
