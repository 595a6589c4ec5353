// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// comment notes on the pod of a worker what a job of a check reported about it, or removes what an earlier job reported. The controller of
// worker pods, which writes the comments of Slurm nodes, reads it from the pod.
func (r *reconciler) comment(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, n activecheckplan.NodeReaction) (did, left []string, err error) {
	if n.Comment == "" && !n.Uncomment {
		return nil, nil, nil
	}
	pod, err := r.workerOf(ctx, check, n.Node)
	if err != nil {
		return nil, nil, err
	}
	if pod == nil {
		if n.Comment != "" {
			left = append(left, "node "+n.Node+" gets no comment, because it has no worker pod")
		}
		return nil, left, nil
	}
	has := pod.Annotations[slinkyv1beta1.AnnotationCheckComment]
	if has == n.Comment || n.Uncomment && !activecheckplan.CommentsOn(check.Name, has) {
		return nil, nil, nil
	}
	apply := corev1ac.Pod(pod.Name, pod.Namespace).WithUID(pod.UID)
	if n.Comment != "" {
		apply.WithAnnotations(map[string]string{slinkyv1beta1.AnnotationCheckComment: n.Comment})
		did = append(did, fmt.Sprintf("commented node %s: %s", n.Node, n.Comment))
	} else {
		did = append(did, "took the comment off node "+n.Node)
	}
	// The annotation is all that this field manager has on a pod, so that applying nothing takes it away.
	if err := r.Client.Apply(ctx, apply, client.FieldOwner(fieldManager), client.ForceOwnership); client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("annotating Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return did, nil, nil
}

// workerOf returns the worker pod of a Slurm node; nil for none.
func (r *reconciler) workerOf(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, name string) (*corev1.Pod, error) {
	pods, err := r.workers(ctx, check)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if pod := &pods[i]; workerpod.SlurmNode(pod) == name && pod.DeletionTimestamp == nil {
			return pod, nil
		}
	}
	return nil, nil //nolint:nilnil // see above
}
