// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// workerOf returns a ready worker pod of demo-worker, whose Slurm node has the name and is in the states.
func workerOf(pod, node string, states ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named(pod)}
	p.Labels = map[string]string{
		"app.kubernetes.io/name": "slurmd", slinkyv1beta1.LabelCluster: "demo", slinkyv1beta1.LabelPodHostname: node,
		slinkyv1beta1.LabelRevisionHash: "new", slinkyv1beta1.LabelPodProtect: "true",
	}
	p.Annotations = map[string]string{}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "slinky.slurm.net/v1beta1", Kind: "NodeSet", Name: "demo-worker", UID: "u"}}
	p.Spec.NodeName, p.Spec.Hostname = "node-7", node
	p.Status.Phase = corev1.PodRunning
	says(p, corev1.PodReady, corev1.ConditionTrue, "", "")
	says(p, slinkyv1beta1.PodConditionRegistered, corev1.ConditionTrue, "", "")
	for _, state := range states {
		says(p, corev1.PodConditionType("SlurmNodeState"+state), corev1.ConditionTrue, "", "")
	}
	return p
}

// says adds a condition to a pod.
func says(p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(3 * time.Hour),
	})
}

// planned is demo-worker with a plan.
func planned() *slinkyv1beta1.NodeSet {
	workers := demoWorkers()
	workers.Status.NodeSetHash = "new"
	workers.Status.Planned = 40
	workers.Status.Plan = []slinkyv1beta1.NodeSetStep{
		{Pod: "demo-worker-4", Action: "Retire", Cause: "update", Message: "waiting for 2 jobs, the last of which is job 812 of alice, which ends no later than 2026-11-25T14:20:00Z"},
		{Pod: "demo-worker-30", Action: "Create", Message: "its predecessor is still there"},
	}
	return workers
}

// workers are pods of demo-worker, each with another story.
func workers() []client.Object {
	maintained := workerOf("demo-worker-3", "worker-3", "Mixed", "Drain")
	says(maintained, slinkyv1beta1.PodConditionOutOfService, corev1.ConditionTrue, "Maintenance",
		"drained by slurm since 2026-11-24T10:04:31Z: [compute_maintenance] node replacement process: NebiusMaintenanceScheduled; jobs run there to "+
			"their end; it is undrained when no condition of Kubernetes node node-7 announces maintenance any more")

	going := workerOf("demo-worker-4", "worker-4", "Allocated", "Drain")
	going.Labels[slinkyv1beta1.LabelRevisionHash] = "old"
	going.Annotations = map[string]string{
		slinkyv1beta1.AnnotationRetired: "update", slinkyv1beta1.AnnotationRetiredAt: "2026-11-25T09:30:00Z",
		slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationPodDeadline: "2026-11-25T14:20:00Z",
	}
	says(going, slinkyv1beta1.PodConditionOutOfService, corev1.ConditionTrue, "Retiring",
		"drained by slurm since 2026-11-25T09:30:01Z: slurm-operator: Pod was cordoned pending termination; the pod is deleted when nothing runs on it, see condition coxswain.dev/Retiring")
	says(going, slinkyv1beta1.PodConditionRetiring, corev1.ConditionTrue, "WaitingForJobs",
		"waiting for 2 jobs, the last of which is job 812 of alice, which ends no later than 2026-11-25T14:20:00Z")

	broken := workerOf("demo-worker-5", "worker-5", "Idle", "InvalidReg")
	says(broken, slinkyv1beta1.PodConditionNeedsAttention, corev1.ConditionTrue, "InvalidRegistration", "slurmd offers 1 GPU, and the record of the node wants 8")

	pending := workerOf("demo-worker-6", "worker-6")
	pending.Spec.NodeName, pending.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	says(pending, corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/8 nodes are available: 8 Insufficient nvidia.com/gpu")

	cordoned := workerOf("demo-worker-7", "worker-7", "Idle", "Drain")
	cordoned.Annotations = map[string]string{slinkyv1beta1.AnnotationPodCordon: "true", slinkyv1beta1.AnnotationNodeCordoned: "true"}
	cordoned.ManagedFields = []metav1.ManagedFieldsEntry{
		owns("coxswain-worker", slinkyv1beta1.AnnotationPodCordon), owns("kubectl-annotate", slinkyv1beta1.AnnotationPodCordon), owns("kubectl-edit", "other"),
	}

	idle := workerOf("demo-worker-8", "worker-8", "Idle")
	idle.Annotations = nil
	idle.Labels[slinkyv1beta1.LabelPodProtect] = "false"

	lost := workerOf("demo-worker-9", "")
	lost.Labels[slinkyv1beta1.LabelPodHostname], lost.Spec.Hostname, lost.Spec.HostNetwork, lost.Spec.NodeName = "", "", true, "machine-9"
	lost.Status.Conditions = nil
	says(lost, slinkyv1beta1.PodConditionRegistered, corev1.ConditionFalse, "", "")
	return []client.Object{planned(), maintained, going, broken, pending, cordoned, idle, lost}
}

// owns returns what the API server records of a field manager that has set an annotation.
func owns(manager, annotation string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + annotation + `":{}}}}`),
	}
}
