// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// EditWarnings returns what an edit of an object does to jobs: of partitions that it takes away, and of the annotation that has jobs end.
// How many jobs there are is in condition EditWaits; Slurm cannot be asked here. The error is what did not answer.
func EditWarnings(ctx context.Context, live client.Reader, old, obj client.Object) ([]string, error) {
	look := newLookup(ctx, live, obj.GetNamespace(), "")
	ends, err := look.endsJobs(ctx, old, obj)
	if err != nil || old.GetGeneration() == obj.GetGeneration() {
		return ends, err
	}
	waits, name, goesErr := look.goes(ctx, old, obj)
	if waits.Any() {
		ends = append(ends, fmt.Sprintf("Controller %s: %s; %s", name, waits.Kept(), countedLater))
	}
	return ends, goesErr
}

// countedLater is the text about jobs here, where Slurm cannot be asked.
const countedLater = "condition EditWaits of the Controller then shows how many jobs need them"

// goes returns what a change takes away that stays for jobs, and the name of the Controller.
func (l lookup) goes(ctx context.Context, old, obj client.Object) (waits slurmctld.EditWaits, name string, err error) {
	after, err := l.configured(ctx, obj)
	if err != nil || after == nil {
		return waits, "", err
	}
	before, err := l.configured(ctx, old)
	if err != nil || before == nil {
		return waits, "", err
	}
	return after.lingering().Without(before.lingering()), after.Controller.Name, nil
}

// endsJobs warns of an annotation that has jobs end, when it is set.
func (l lookup) endsJobs(ctx context.Context, old, obj client.Object) ([]string, error) {
	digest := obj.GetAnnotations()[slinkyv1beta1.AnnotationEndJobs]
	if digest == "" || digest == old.GetAnnotations()[slinkyv1beta1.AnnotationEndJobs] {
		return nil, nil
	}
	c := &slinkyv1beta1.Controller{}
	switch o := obj.(type) {
	case *slinkyv1beta1.Controller:
		c = o
	case *nebiusv1.SlurmCluster:
		if _, err := l.get(ctx, o.Namespace, o.ControllerName(), c); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	waits := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionEditWaits)
	if waits != nil {
		if jobs, ok := slurmctld.JobsOf(waits.Message, digest); ok {
			return []string{fmt.Sprintf("annotation %s=%s makes slurmctld end the jobs that need the removed partitions and nodes, at once and without requeueing them; %s",
				slinkyv1beta1.AnnotationEndJobs, digest, jobs)}, nil
		}
	}
	return []string{fmt.Sprintf("annotation %s=%s: no edit with this digest waits for jobs. If a later edit has this digest, slurmctld ends the jobs that need what that edit removes, and it is not known how many these are",
		slinkyv1beta1.AnnotationEndJobs, digest)}, nil
}

// configured is what slurm.conf is rendered from, with a given object in place of the live one.
type configured struct{ slurmctld.Input }

// lingering returns the partitions that stay, whatever the annotation.
func (c *configured) lingering() slurmctld.EditWaits {
	in := c.Input
	in.Controller = in.Controller.DeepCopy()
	delete(in.Controller.Annotations, slinkyv1beta1.AnnotationEndJobs)
	return slurmctld.Render(in).EditWaits
}

// configured looks up what slurm.conf is rendered from; nil when there is none yet, or the object is not one of its sources.
func (l lookup) configured(ctx context.Context, obj client.Object) (*configured, error) {
	var in slurmctld.Input
	var err error
	switch o := obj.(type) {
	case *slinkyv1beta1.Controller:
		in.Controller = o
		in.NodeSets, err = l.nodeSetsOf(o, nil)
	case *slinkyv1beta1.NodeSet:
		c := &slinkyv1beta1.Controller{}
		found, getErr := l.get(ctx, o.Namespace, o.Spec.ControllerRef.Name, c)
		if getErr != nil || !found {
			return nil, getErr
		}
		in.Controller = c
		in.NodeSets, err = l.nodeSetsOf(c, o)
	case *nebiusv1.SlurmCluster:
		err = l.composed(ctx, o, nil, &in)
	case *nebiusv1alpha1.NodeSet:
		cluster, found, ownerErr := l.ownerOf(ctx, o)
		if ownerErr != nil || !found {
			return nil, ownerErr
		}
		err = l.composed(ctx, cluster, o, &in)
	}
	if err != nil || in.Controller == nil || in.Controller.Spec.External {
		return nil, err
	}
	config := &corev1.ConfigMap{}
	found, err := l.get(ctx, obj.GetNamespace(), in.Controller.ConfigName(), config)
	if err != nil || !found {
		return nil, err
	}
	in.Live, in.Images = slurmctld.ReadLive(config.Data), images()
	var ignored Findings // Find has said it
	return &configured{in}, l.files(ctx, in.Controller, &in.Files, &ignored)
}

// nodeSetsOf returns the NodeSets of a Controller, edited in place of the one of its name.
func (l lookup) nodeSetsOf(c *slinkyv1beta1.Controller, edited *slinkyv1beta1.NodeSet) ([]slinkyv1beta1.NodeSet, error) {
	sets, err := l.nodeSets()
	var out []slinkyv1beta1.NodeSet
	for _, set := range sets {
		if edited != nil && set.Name == edited.Name {
			set = *edited
		}
		// One that waits for its last jobs keeps its place in slurm.conf.
		there := set.DeletionTimestamp == nil || slices.Contains(set.Finalizers, slinkyv1beta1.FinalizerWorkers)
		if there && set.Spec.ControllerRef.Name == c.Name && set.Spec.ControllerRef.InNamespace(c.Namespace) == nil {
			out = append(out, set)
		}
	}
	return out, err
}

// composed composes what a SlurmCluster needs for slurm.conf, edited in place of the NodeSet of its name.
func (l lookup) composed(ctx context.Context, cluster *nebiusv1.SlurmCluster, edited *nebiusv1alpha1.NodeSet, in *slurmctld.Input) error {
	out, err := l.compose(ctx, cluster, edited)
	if err != nil {
		return err
	}
	in.Controller = out.Components.Controller
	for _, set := range out.Components.NodeSets {
		in.NodeSets = append(in.NodeSets, *set)
	}
	return nil
}
