// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeSetStatus is what the operator observes of a NodeSet.
type NodeSetStatus struct {
	// ObservedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Desired is the number of workers that there should be: replicas, or in scaling mode DaemonSet the number of
	// Kubernetes nodes that the template fits.
	// +optional
	Desired int32 `json:"desired,omitempty"`

	// Replicas is the number of worker pods.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// UpdatedReplicas is the number of worker pods of the newest revision that are not being deleted.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// ReadyReplicas is the number of worker pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// AvailableReplicas is the number of worker pods that have been ready for minReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// UnavailableReplicas is the number of workers that are missing or not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// SlurmIdle is the number of workers whose Slurm node is IDLE.
	// +optional
	SlurmIdle int32 `json:"slurmIdle,omitempty"`

	// SlurmAllocated is the number of workers whose Slurm node is ALLOCATED or MIXED.
	// +optional
	SlurmAllocated int32 `json:"slurmAllocated,omitempty"`

	// SlurmDown is the number of workers whose Slurm node is DOWN.
	// +optional
	SlurmDown int32 `json:"slurmDown,omitempty"`

	// SlurmDrain is the number of workers whose Slurm node is in DRAIN.
	// +optional
	SlurmDrain int32 `json:"slurmDrain,omitempty"`

	// OutOfService are the workers whose Slurm nodes get no new jobs, by what keeps them from it, in the order of the reasons. Condition
	// coxswain.dev/OutOfService of each pod has details.
	// +optional
	// +listType=map
	// +listMapKey=reason
	OutOfService []NodeSetOutOfService `json:"outOfService,omitempty"`

	// NodeSetHash is the value of label controller.kubernetes.io/hash on pods of the newest revision.
	// +optional
	NodeSetHash string `json:"nodeSetHash,omitempty"`

	// CollisionCount is the number of times that the hash of a revision met another revision's name.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// OrdinalToNode maps ordinals to the Kubernetes nodes that they are pinned to (pinToNode).
	// +optional
	// +nullable
	OrdinalToNode map[string]string `json:"ordinalToNode,omitempty"`

	// Reservation is the maintenance reservation that was made in Slurm for updateStrategy.scheduledUpdate.
	// +optional
	Reservation *NodeSetReservation `json:"reservation,omitempty"`

	// Plan is what is going to happen to workers, in order, at most 32 of them: which are being retired and what that waits
	// for, then which go after them. With annotation coxswain.dev/dry-run: "true" it is all that would happen, and nothing
	// does.
	// +optional
	// +listType=atomic
	Plan []NodeSetStep `json:"plan,omitempty"`

	// Planned is the number of steps of the whole plan.
	// +optional
	Planned int32 `json:"planned,omitempty"`

	// Selector selects the worker pods, for HorizontalPodAutoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Conditions are Ready, Reconciling, Stalled, FieldsIgnored, ReservationCreated, WorkersUnknown and DrainsByChecksPaused.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeSetOutOfService is the workers whose Slurm nodes get no new jobs for the same reason.
type NodeSetOutOfService struct {
	// Reason is the reason of condition coxswain.dev/OutOfService on the pods: Retiring, Maintenance, EphemeralStorage, Cordoned,
	// KubernetesNodeUnknown, WaitsForChecks, Returning, NotResponding, InvalidRegistration, FailedCheck or HeldBySomebody.
	Reason string `json:"reason"`

	// Count is the number of workers.
	Count int32 `json:"count"`

	// Nodes are their Slurm nodes, as a host list expression; cut after 1024 characters.
	Nodes string `json:"nodes"`

	// Since is when the first of them was taken out of service.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// NodeSetStep is one thing that is going to happen to a worker.
type NodeSetStep struct {
	// Pod is the name of the worker's pod.
	Pod string `json:"pod"`

	// Action is Create, Delete (nothing runs in it), Retire (its Slurm node is drained, and it is deleted when nothing runs
	// on it), or Unretire (it was to go and stays).
	Action string `json:"action"`

	// Cause is why a worker is retired: scale-in, update, replace (it was made for another scaling mode or host name), or
	// unregistered (Slurm does not have its node).
	// +optional
	Cause string `json:"cause,omitempty"`

	// Message is what the step waits for, such as a job and when that ends.
	// +optional
	Message string `json:"message,omitempty"`
}

// NodeSetReservation is a maintenance reservation in Slurm.
type NodeSetReservation struct {
	// Name is the name of the reservation, SlurmOperatorMaint-<name of the NodeSet>.
	Name string `json:"name"`

	// StartTime is the start that it was made with. Slurm moves a recurring reservation on; scontrol show reservation shows
	// when it begins next.
	StartTime metav1.Time `json:"startTime"`

	// Duration is the length that it was made with.
	Duration metav1.Duration `json:"duration"`

	// Flags are the flags that it was made with.
	// +optional
	// +listType=atomic
	Flags []string `json:"flags,omitempty"`
}
