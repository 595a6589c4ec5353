// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	plans "github.com/coxswain-hpc/coxswain/internal/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/worker"
)

// marksOwner is the field manager of the marks that this controller puts on pods, apart from what others put on them.
const marksOwner = kube.FieldManager + "-nodeset"

// execute carries a plan out. Each of its steps stands for itself: what fails is tried again by the next reconcile, from
// which the same plan follows.
func (r *reconciler) execute(ctx context.Context, in worker.Input, revision string, pods []corev1.Pod, plan plans.Plan) error {
	byName := make(map[string]*corev1.Pod, len(pods))
	for i := range pods {
		byName[pods[i].Name] = &pods[i]
	}
	n := in.NodeSet
	var errs []error
	for _, place := range plan.Create {
		err := r.create(ctx, in, worker.Identity(place), revision)
		errs = append(errs, err)
		if _, refused := errors.AsType[*kube.RejectedError](err); refused {
			break // the others are made alike
		}
	}
	for _, name := range plan.Delete {
		pod := byName[name]
		err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		if err == nil {
			r.Applier.Deleted(n, pod)
			r.Recorder.Eventf(n, pod, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted Pod %s, in which nothing ran", name)
		}
		errs = append(errs, wrap(component.IgnoreGone(err), "deleting the idle", n, name))
	}
	for _, retirement := range plan.Retire {
		err := r.mark(ctx, n, byName[retirement.Pod], map[string]string{
			RetiredAnnotation: string(retirement.Cause), slinkyv1beta1.AnnotationPodCordon: "true",
		})
		if err == nil {
			log.FromContext(ctx).Info("Retired a worker", "pod", retirement.Pod, "cause", string(retirement.Cause))
			r.Recorder.Eventf(n, byName[retirement.Pod], corev1.EventTypeNormal, "Retiring", "Retire",
				"Retiring Pod %s (%s): it is deleted when its Slurm node is drained", retirement.Pod, string(retirement.Cause))
		}
		errs = append(errs, wrap(err, "retiring", n, retirement.Pod))
	}
	for _, name := range plan.Reprieve {
		errs = append(errs, wrap(r.mark(ctx, n, byName[name], nil), "reprieving", n, name))
	}
	return errors.Join(errs...)
}

func (r *reconciler) create(ctx context.Context, in worker.Input, id worker.Identity, revision string) error {
	n := in.NodeSet
	claims, err := worker.Claims(n, id)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		err := r.Client.Create(ctx, claim, client.FieldOwner(kube.FieldManager))
		if err != nil && !apierrors.IsAlreadyExists(err) { // a claim is kept for its ordinal
			return fmt.Errorf("creating PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	pod, err := worker.Pod(in, id, revision)
	if err != nil {
		return err
	}
	if err := controllerutil.SetControllerReference(n, pod, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	err = r.Client.Create(ctx, pod, client.FieldOwner(kube.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.adopt(ctx, n, pod)
	case apierrors.IsInvalid(err):
		return &kube.RejectedError{Object: refTo(pod), Err: err}
	case err != nil:
		return fmt.Errorf("creating Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.Applier.Wrote(n, pod)
	r.Recorder.Eventf(n, pod, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created Pod %s", pod.Name)
	return nil
}

// adopt makes the pod that has the name of wanted ours, if it was a worker of a NodeSet of this name and belongs to nobody
// now, as after "kubectl delete nodeset --cascade=orphan". Its revision says whether it is to be replaced.
func (r *reconciler) adopt(ctx context.Context, n *slinkyv1beta1.NodeSet, wanted *corev1.Pod) error {
	live := &corev1.Pod{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	holder := metav1.GetControllerOf(live)
	switch {
	case live.DeletionTimestamp != nil, holder != nil && holder.Kind == "NodeSet" && holder.Name == n.Name:
		return nil // it is ours, or of a NodeSet that was deleted and made anew and goes with it; an event follows
	case holder != nil:
		return &kube.ConflictError{
			Object: refTo(live), Owner: kube.Ref{Kind: "NodeSet", Namespace: n.Namespace, Name: n.Name},
			Holder: kube.Ref{Kind: holder.Kind, Namespace: live.Namespace, Name: holder.Name},
		}
	}
	for _, key := range []string{label.Name, label.Instance, slinkyv1beta1.LabelCluster} {
		if live.Labels[key] != wanted.Labels[key] {
			return &kube.ConflictError{Object: refTo(live), Owner: kube.Ref{Kind: "NodeSet", Namespace: n.Namespace, Name: n.Name}}
		}
	}
	before := live.DeepCopy()
	if err := controllerutil.SetControllerReference(n, live, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning Pod %s/%s: %w", live.Namespace, live.Name, err)
	}
	if err := r.Client.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adopting Pod %s/%s: %w", live.Namespace, live.Name, err)
	}
	r.Applier.Wrote(n, live)
	log.FromContext(ctx).Info("Adopted a worker", "pod", live.Name)
	return nil
}

func refTo(pod *corev1.Pod) kube.Ref {
	return kube.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
}

// mark puts exactly these annotations of ours on a pod; those that we set before and that are not among them go. A plan
// from a view without the mark could retire another worker in addition, so the write is noted.
func (r *reconciler) mark(ctx context.Context, n *slinkyv1beta1.NodeSet, pod *corev1.Pod, annotations map[string]string) error {
	stamp := &unstructured.Unstructured{}
	stamp.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	stamp.SetNamespace(pod.Namespace)
	stamp.SetName(pod.Name)
	stamp.SetUID(pod.UID)
	stamp.SetAnnotations(annotations)
	err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(stamp), client.FieldOwner(marksOwner), client.ForceOwnership)
	if err == nil {
		r.Applier.Wrote(n, stamp)
	}
	return component.IgnoreGone(err)
}

func wrap(err error, what string, n *slinkyv1beta1.NodeSet, pod string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s Pod %s of NodeSet %s/%s: %w", what, pod, n.Namespace, n.Name, err)
}
