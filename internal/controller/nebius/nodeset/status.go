// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// Facts are what the status of a NodeSet is computed from.
type Facts struct {
	// Owner is the name of its SlurmCluster, empty if it has none, and Cluster that object, nil if there is none.
	Owner   string
	Cluster *nebiusv1.SlurmCluster
	// Composed is what it is composed to; nil if that does not exist yet.
	Composed *slinkyv1beta1.NodeSet
	Now      time.Time
}

// Write computes the status, all but the summary conditions, which it returns for kube.Report.
func (f Facts) Write(set *nebiusv1alpha1.NodeSet) kube.Summary {
	summary := kube.Summary{Generation: set.Generation, Now: f.Now}
	cluster := f.Cluster
	if cluster == nil {
		cluster = &nebiusv1.SlurmCluster{} // what has no effect has none under any
	}
	spec := compose.NodeSet(cluster, set)
	part := kube.Part{Name: "workers", Reason: kube.ReasonWaiting, Message: "are not created yet"}
	switch {
	case f.Owner == "":
		summary.Problems = append(summary.Problems, problem.Waitingf("spec.clusterName", slinkyv1beta1.ReasonReferenceNotFound,
			"must name a SlurmCluster; there is none in the namespace"))
	case f.Cluster == nil:
		summary.Problems = append(summary.Problems, problem.Waitingf("spec.clusterName", slinkyv1beta1.ReasonReferenceNotFound,
			"SlurmCluster %s does not exist", f.Owner))
	default:
		summary.Problems = spec.Problems
	}
	if f.Composed != nil {
		part = kube.PartOf("workers", f.Composed.Generation, f.Composed.Status.Conditions)
	}
	summary.Parts = []kube.Part{part}

	f.conditions(set, part, &spec)
	set.Status.ObservedGeneration = set.Generation
	set.Status.Replicas, set.Status.LabelSelector = 0, ""
	if f.Composed != nil {
		set.Status.Replicas, set.Status.LabelSelector = f.Composed.Status.ReadyReplicas, f.Composed.Status.Selector
	}
	set.Status.Phase = f.phase(part)
	return summary
}

func (f Facts) phase(part kube.Part) nebiusv1alpha1.NodeSetPhase {
	switch {
	case f.Composed == nil:
		return nebiusv1alpha1.NodeSetPending
	case f.atRest():
		return nebiusv1alpha1.NodeSetTerminating
	case part.Ready:
		return nebiusv1alpha1.NodeSetReady
	default:
		return nebiusv1alpha1.NodeSetProvisioning
	}
}

func (f Facts) atRest() bool { return f.Cluster != nil && f.Cluster.Spec.Maintenance.Downscaled() }

// conditions writes those of the contract, soperator.md §4.4. They are Unknown until there is something to say.
func (f Facts) conditions(set *nebiusv1alpha1.NodeSet, part kube.Part, spec *compose.NodeSetOutput) {
	put := func(kind string, status metav1.ConditionStatus, reason, message string) {
		kube.SetCondition(&set.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, ObservedGeneration: set.Generation, Reason: reason, Message: message,
		}, f.Now)
	}
	if all, message := compose.Effect(spec.Ignored, spec.Notes); all {
		put(nebiusv1.ConditionSpecEffective, metav1.ConditionTrue, nebiusv1.ReasonAllFieldsEffective, message)
	} else {
		put(nebiusv1.ConditionSpecEffective, metav1.ConditionFalse, nebiusv1.ReasonFieldsNotEffective, message)
	}
	put(nebiusv1alpha1.ConditionConfigDynamicUpdated, metav1.ConditionUnknown, nebiusv1alpha1.ReasonSetUpCondition, "spec.nodeConfig.dynamic has no effect")
	if f.Composed == nil {
		for _, kind := range []string{
			nebiusv1alpha1.ConditionConfigUpdated, nebiusv1alpha1.ConditionStatefulSetUpdated,
			nebiusv1alpha1.ConditionPodsReady, nebiusv1alpha1.ConditionStatefulSetTerminated,
		} {
			put(kind, metav1.ConditionUnknown, nebiusv1alpha1.ReasonSetUpCondition, "the workers are not composed yet")
		}
		return
	}
	status := &f.Composed.Status
	put(nebiusv1alpha1.ConditionConfigUpdated, metav1.ConditionTrue, nebiusv1alpha1.ReasonNodeSetReady,
		"the nodes are NodeSet "+f.Composed.SlurmName()+" in slurm.conf and describe themselves when they register")
	updated := fmt.Sprintf("%d of %d workers are of the current revision", status.UpdatedReplicas, status.Desired)
	if status.UpdatedReplicas >= status.Desired {
		put(nebiusv1alpha1.ConditionStatefulSetUpdated, metav1.ConditionTrue, nebiusv1alpha1.ReasonNodeSetReady, updated)
	} else {
		put(nebiusv1alpha1.ConditionStatefulSetUpdated, metav1.ConditionFalse, nebiusv1alpha1.ReasonNodeSetNotReady, updated)
	}
	if part.Ready {
		put(nebiusv1alpha1.ConditionPodsReady, metav1.ConditionTrue, nebiusv1alpha1.ReasonNodeSetReady, part.Message)
	} else {
		put(nebiusv1alpha1.ConditionPodsReady, metav1.ConditionFalse, nebiusv1alpha1.ReasonNodeSetNotReady, part.Message)
	}
	if f.atRest() {
		put(nebiusv1alpha1.ConditionStatefulSetTerminated, metav1.ConditionTrue, nebiusv1alpha1.ReasonMaintenance, "spec.maintenance of the SlurmCluster is "+string(f.Cluster.Spec.Maintenance))
	} else {
		put(nebiusv1alpha1.ConditionStatefulSetTerminated, metav1.ConditionFalse, nebiusv1alpha1.ReasonWorkersEnabled, "workers run")
	}
}
