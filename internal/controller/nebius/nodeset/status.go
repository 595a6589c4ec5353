// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/reconcile"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
)

func report(set *nebiusv1alpha1.NodeSet, o reconcile.Outcome[facts, *plan, struct{}]) reconcile.Report {
	f := o.Facts
	part := kube.Part{Name: "workers", Reason: kube.ReasonWaiting, Message: "are not created yet"}
	if f.composed != nil {
		part = kube.PartOf("workers", f.composed.Generation, f.composed.Status.Conditions)
	}
	if f.comesBack() && part.Ready {
		part = kube.Part{Name: "workers", Reason: kube.ReasonWaiting, Message: "wait for slurmctld"}
	}
	out := reconcile.Report{Parts: []kube.Part{part}}
	f.conditions(&out, part)
	set.Status.ObservedGeneration = set.Generation
	set.Status.Replicas, set.Status.LabelSelector = 0, ""
	if f.composed != nil {
		set.Status.Replicas, set.Status.LabelSelector = f.composed.Status.ReadyReplicas, f.composed.Status.Selector
	}
	set.Status.Phase = f.phase(part)
	return out
}

func (f facts) phase(part kube.Part) nebiusv1alpha1.NodeSetPhase {
	switch {
	case f.composed == nil:
		return nebiusv1alpha1.NodeSetPending
	case f.atRest():
		return nebiusv1alpha1.NodeSetTerminating
	case part.Ready:
		return nebiusv1alpha1.NodeSetReady
	default:
		return nebiusv1alpha1.NodeSetProvisioning
	}
}

func (f facts) atRest() bool { return f.cluster != nil && f.cluster.Spec.Maintenance.Downscaled() }

// comesBack reports whether the workers are still scaled to zero after maintenance.
func (f facts) comesBack() bool {
	return !f.atRest() && f.composed != nil && f.composed.Replicas() == 0 && (f.set.Spec.Replicas == nil || *f.set.Spec.Replicas > 0)
}

// conditions adds those of Soperator (docs/contributors/predecessors/soperator-objects.md#conditions-of-a-nodeset). They are Unknown until
// there is something to say.
func (f facts) conditions(out *reconcile.Report, part kube.Part) {
	if f.composed == nil {
		for _, kind := range []string{
			nebiusv1alpha1.ConditionConfigDynamicUpdated, nebiusv1alpha1.ConditionConfigUpdated, nebiusv1alpha1.ConditionStatefulSetUpdated,
			nebiusv1alpha1.ConditionPodsReady, nebiusv1alpha1.ConditionStatefulSetTerminated,
		} {
			out.SetCondition(kind, metav1.ConditionUnknown, nebiusv1alpha1.ReasonSetUpCondition, "the workers are not composed yet")
		}
		return
	}
	status := &f.composed.Status
	updated, reason := metav1.ConditionTrue, nebiusv1alpha1.ReasonNodeSetReady
	if status.UpdatedReplicas < status.Desired {
		updated, reason = metav1.ConditionFalse, nebiusv1alpha1.ReasonNodeSetNotReady
	}
	message := fmt.Sprintf("%d of %d workers are of the current revision", status.UpdatedReplicas, status.Desired)
	if f.set.Spec.NodeConfig.Dynamic == "" {
		out.SetCondition(nebiusv1alpha1.ConditionConfigDynamicUpdated, metav1.ConditionUnknown, nebiusv1alpha1.ReasonSetUpCondition, "spec.nodeConfig.dynamic is empty")
	} else {
		out.SetCondition(nebiusv1alpha1.ConditionConfigDynamicUpdated, updated, reason, message)
	}
	out.SetCondition(nebiusv1alpha1.ConditionConfigUpdated, metav1.ConditionTrue, nebiusv1alpha1.ReasonNodeSetReady,
		"the nodes are NodeSet "+f.composed.SlurmName()+" in slurm.conf and describe themselves when they register")
	out.SetCondition(nebiusv1alpha1.ConditionStatefulSetUpdated, updated, reason, message)
	if part.Ready {
		out.SetCondition(nebiusv1alpha1.ConditionPodsReady, metav1.ConditionTrue, nebiusv1alpha1.ReasonNodeSetReady, part.Message)
	} else {
		out.SetCondition(nebiusv1alpha1.ConditionPodsReady, metav1.ConditionFalse, nebiusv1alpha1.ReasonNodeSetNotReady, part.Message)
	}
	if f.atRest() {
		out.SetCondition(nebiusv1alpha1.ConditionStatefulSetTerminated, metav1.ConditionTrue, nebiusv1alpha1.ReasonMaintenance, "spec.maintenance of the SlurmCluster is "+string(f.cluster.Spec.Maintenance))
	} else {
		out.SetCondition(nebiusv1alpha1.ConditionStatefulSetTerminated, metav1.ConditionFalse, nebiusv1alpha1.ReasonWorkersEnabled, "workers run")
	}
}
