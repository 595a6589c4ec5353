// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SConfigController is the Deployment that writes files of JailedConfigs into the jail and has Slurm reread its configuration. It is made
// for a cluster with a jail, when that is filled.
//
// +kubebuilder:validation:XValidation:rule="!has(self.reconfigureWaitTimeout) || !has(self.reconfigurePollInterval) || duration(self.reconfigureWaitTimeout) > duration(self.reconfigurePollInterval)",message="ReconfigureWaitTimeout must be greater than ReconfigurePollInterval"
type SConfigController struct {
	// Container is the container of the config writer.
	// +optional
	Container NodeContainer `json:"container,omitzero"`

	// Node places the pods.
	// +optional
	// +kubebuilder:default={}
	Node SConfigControllerNode `json:"node,omitzero"`

	// Deprecated: use node.hostUsers, which wins.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// ReconfigurePollInterval is how often the nodes are looked at while a reconfiguration is under way, such as 20s.
	// Default: 20s.
	// +optional
	// +kubebuilder:default="20s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=64
	ReconfigurePollInterval metav1.Duration `json:"reconfigurePollInterval,omitzero"`

	// ReconfigureWaitTimeout is how long nodes may take to adopt a new configuration, such as 5m. Default: 5m.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=64
	ReconfigureWaitTimeout metav1.Duration `json:"reconfigureWaitTimeout,omitzero"`

	// RunAsUID is the user that the pods run as. The directory /etc/slurm of the jail is given to it; others that files are written to
	// have to belong to it. Default: 0, without any capability: a jail has people with the user ids from 1000.
	// +optional
	RunAsUID *int64 `json:"runAsUid,omitempty"`

	// RunAsGID is the group that the pods run as. Default: 0.
	// +optional
	RunAsGID *int64 `json:"runAsGid,omitempty"`

	// ServiceAccountName is the ServiceAccount of the pods. Default: <cluster>-sconfigcontroller-sa, made by the
	// operator.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// SConfigControllerNode places the pods of the config writer.
type SConfigControllerNode struct {
	SlurmNode `json:",inline"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// Size is the number of pods: 0 or 1. With more it is 1, since one writes at a time. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Size *int32 `json:"size,omitempty"`
}
