// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Owner returns the NodeSet that has made or adopted a pod; nil for none. It must not be changed.
func Owner(p *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil || owner.Kind != "NodeSet" || !strings.HasPrefix(owner.APIVersion, slinkyv1beta1.GroupVersion.Group+"/") {
		return nil
	}
	return owner
}

// DryRun reports whether nothing is to be done to the workers of a NodeSet.
func DryRun(n *slinkyv1beta1.NodeSet) bool {
	return n.Annotations[slinkyv1beta1.AnnotationDryRun] == "true"
}

// Lost reports whether Slurm was found to have lost its state, and workers of the NodeSet have been missing there since.
func Lost(n *slinkyv1beta1.NodeSet) bool {
	return meta.IsStatusConditionTrue(n.Status.Conditions, slinkyv1beta1.ConditionWorkersUnknown)
}

// Growing reports whether more than a tenth of a NodeSet's wanted workers do not exist yet, or are not ready and not part of an update, by
// the last count.
func Growing(n *slinkyv1beta1.NodeSet) bool {
	wanted := n.Status.Desired
	if n.ScalingMode() == slinkyv1beta1.ScalingModeStatefulSet {
		wanted = n.Replicas()
	}
	nineTenths := func(have int32) bool { return 10*have >= 9*wanted }
	updated := n.Status.UpdatedReplicas == n.Status.Replicas
	return !nineTenths(n.Status.Replicas) || updated && !nineTenths(n.Status.ReadyReplicas)
}
