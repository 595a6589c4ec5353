// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	nodesets "github.com/coxswain-hpc/coxswain/internal/controller/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/link"
	"github.com/coxswain-hpc/coxswain/internal/nodeset"
)

// drive carries the action out.
func (r *reconciler) drive(ctx context.Context, l *link.Link, pod *corev1.Pod, set *slinkyv1beta1.NodeSet, w nodeset.Worker, action nodeset.Action) error {
	name := nodesets.SlurmNode(pod)
	key := client.ObjectKeyFromObject(pod)
	switch {
	case action.Drain != "":
		err := l.Drain(ctx, []string{name}, action.Drain)[name]
		r.writes.wrote(key, r.Clock.Now())
		if err != nil {
			return fmt.Errorf("draining Slurm node %s of Pod %s: %w", name, key, err)
		}
		log.FromContext(ctx).Info("Drained a Slurm node", "node", name, "reason", action.Drain)
		r.Recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Drained", "Drain", "Slurm node %s drains: %s", name, action.Message)
	case action.Undrain:
		err := l.Undrain(ctx, []string{name})[name]
		r.writes.wrote(key, r.Clock.Now())
		if err != nil {
			return fmt.Errorf("undraining Slurm node %s of Pod %s: %w", name, key, err)
		}
		log.FromContext(ctx).Info("Undrained a Slurm node", "node", name)
		r.Recorder.Eventf(pod, nil, corev1.EventTypeNormal, "Undrained", "Undrain", "Slurm node %s takes jobs again", name)
	}
	if action.Delete {
		return r.delete(ctx, pod, set, action)
	}
	if err := r.mark(ctx, pod, action); err != nil {
		return err
	}
	return r.show(ctx, pod, w, action)
}

// delete deletes the very version of the pod that was decided about: it may have been reprieved since.
func (r *reconciler) delete(ctx context.Context, pod *corev1.Pod, set *slinkyv1beta1.NodeSet, action nodeset.Action) error {
	err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the event of that change is on its way
	}
	if err != nil {
		return fmt.Errorf("deleting Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	log.FromContext(ctx).Info("Deleted a worker", "why", action.Message)
	r.Recorder.Eventf(set, pod, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted Pod %s: %s", pod.Name, action.Message)
	return nil
}
