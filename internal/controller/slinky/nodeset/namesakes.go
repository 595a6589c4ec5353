// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// namesakes are the workers of other NodeSets of a cluster by their host names, which are those of their Slurm nodes. Two slurmds of
// one name are one node to slurmctld: the second takes the record over, and with it the jobs of the first.
type namesakes map[string]*corev1.Pod

// namesakes finds them, for the workers that are about to be made.
func (r *reconciler) namesakes(ctx context.Context, n *slinkyv1beta1.NodeSet) (namesakes, error) {
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(n.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{label.Name: slinkyv1beta1.NameSlurmd, slinkyv1beta1.LabelCluster: n.Spec.ControllerRef.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the workers of Controller %s/%s: %w", n.Namespace, n.Spec.ControllerRef.Name, err)
	}
	out := namesakes{}
	for i := range pods.Items {
		owner, hostname := workerpod.Owner(&pods.Items[i]), pods.Items[i].Labels[slinkyv1beta1.LabelPodHostname]
		if hostname != "" && owner != nil && owner.UID != n.UID {
			out[hostname] = &pods.Items[i]
		}
	}
	return out, nil
}

// forbid says why a worker cannot be made now.
func (s namesakes) forbid(pod *corev1.Pod) error {
	other := s[pod.Labels[slinkyv1beta1.LabelPodHostname]]
	if other == nil || other.Name == pod.Name { // one of that name is a matter of adoption
		return nil
	}
	return problem.Errorf("Pod "+pod.Name, slinkyv1beta1.ReasonHostnameConflict,
		"host name %s is that of a worker of NodeSet %s, and in Slurm both would be one node; set another spec.template.spec.hostname",
		pod.Spec.Hostname, metav1.GetControllerOfNoCopy(other).Name)
}

// watchNamesakes wakes the NodeSets that wait for a host name when a worker of another one is gone.
func (r *reconciler) watchNamesakes(b *builder.Builder) {
	b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.waitingForNames), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
}

func (r *reconciler) waitingForNames(ctx context.Context, pod client.Object) []ctrl.Request {
	cluster := pod.GetLabels()[slinkyv1beta1.LabelCluster]
	if cluster == "" {
		return nil
	}
	var sets slinkyv1beta1.NodeSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(pod.GetNamespace()), client.MatchingFields{reference.Index: reference.To("Controller", cluster)}); err != nil {
		log.FromContext(ctx).Error(err, "Could not find the NodeSets that wait for a host name")
		return nil
	}
	var out []ctrl.Request
	for i := range sets.Items {
		stalled := meta.FindStatusCondition(sets.Items[i].Status.Conditions, slinkyv1beta1.ConditionStalled)
		if stalled != nil && stalled.Reason == slinkyv1beta1.ReasonHostnameConflict {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return out
}
