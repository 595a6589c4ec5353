// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeSetUpdateStrategy is how workers are replaced when their template changes. A worker is always drained first.
//
// +kubebuilder:validation:XValidation:rule=`self.?type.orValue("RollingUpdate") != "ScheduledUpdate" || self.?scheduledUpdate.startTime.hasValue()`,message="scheduledUpdate.startTime and scheduledUpdate.duration are required when type is ScheduledUpdate"
type NodeSetUpdateStrategy struct {
	// Type is how workers are replaced. RollingUpdate: some at a time. OnDelete: when somebody deletes them.
	// ScheduledUpdate: in a maintenance reservation of Slurm. Default: RollingUpdate.
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type UpdateStrategyType `json:"type,omitempty"`

	// RollingUpdate are the parameters of type RollingUpdate.
	// +optional
	// +kubebuilder:default={}
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`

	// ScheduledUpdate are the parameters of type ScheduledUpdate.
	// +optional
	ScheduledUpdate *ScheduledUpdate `json:"scheduledUpdate,omitempty"`
}

// UpdateStrategyType is how workers are replaced when their template changes.
//
// +kubebuilder:validation:Enum="";RollingUpdate;OnDelete;ScheduledUpdate
type UpdateStrategyType string

// The update strategies.
const (
	// UpdateRolling replaces some workers at a time.
	UpdateRolling UpdateStrategyType = "RollingUpdate"
	// UpdateOnDelete replaces a pod when a user deletes it.
	UpdateOnDelete UpdateStrategyType = "OnDelete"
	// UpdateScheduled replaces workers in a maintenance reservation of Slurm.
	UpdateScheduled UpdateStrategyType = "ScheduledUpdate"
)

// RollingUpdate are the parameters of update strategy RollingUpdate.
type RollingUpdate struct {
	// MaxUnavailable is how many workers may be unavailable during the update: a number from 1, or a percentage of the
	// desired workers from 1%, rounded up. Missing, terminating and unready workers count. Default: 25%.
	// +optional
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : self.matches('^([1-9][0-9]?|100)%$')",message="must be a number from 1 or a percentage from 1% to 100%"
	// +kubebuilder:validation:MaxLength=8
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// ScheduledUpdate are the parameters of update strategy ScheduledUpdate.
type ScheduledUpdate struct {
	// StartTime is when the reservation, and with it the update, begins: a time as in RFC 3339, such as
	// 2027-01-31T22:00:00Z.
	// Slurm: https://slurm.schedmd.com/scontrol.html#OPT_StartTime_1
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// Duration is the length of the reservation, as a Go duration of at least 1m. Default: 30m.
	// Slurm: https://slurm.schedmd.com/scontrol.html#OPT_Duration
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(h|m|s|ms))+$') && (duration(self) == duration('0s') || duration(self) >= duration('1m'))",message="must be a duration of at least 1m, such as 30m or 1h30m"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// Flags are added to those of the reservation (MAINT and IGNORE_JOBS), such as WEEKLY.
	// Slurm: https://slurm.schedmd.com/scontrol.html#OPT_Flags
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z_]+$`
	Flags []string `json:"flags,omitempty"`
}
