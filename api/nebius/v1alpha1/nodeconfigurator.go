// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// NodeConfigurator is a DaemonSet that configures Kubernetes nodes, and drains and reboots them when Slurm asks for that.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Rebooter Enabled",type=boolean,JSONPath=`.spec.rebooter.enabled`,description="Whether the rebooter runs"
// +kubebuilder:printcolumn:name="NodeConfigurator Enabled",type=boolean,JSONPath=`.spec.nodeConfigurator.enabled`,description="Whether an idle container runs instead"
// +kubebuilder:printcolumn:name="Custom Container Enabled",type=boolean,JSONPath=`.spec.customContainer.enabled`,description="Whether a container of the user runs",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeConfigurator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the wanted DaemonSet.
	// +optional
	// +kubebuilder:default={}
	Spec NodeConfiguratorSpec `json:"spec,omitzero"`

	// Status is what is known of it.
	// +optional
	Status NodeConfiguratorStatus `json:"status,omitzero"`
}

// NodeConfiguratorList is a list of NodeConfigurators.
//
// +kubebuilder:object:root=true
type NodeConfiguratorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeConfigurator `json:"items"`
}

// NodeConfiguratorSpec is the wanted DaemonSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodeConfigurator) || self.rebooter.enabled != self.nodeConfigurator.enabled",message="Either rebooter or nodeConfigurator must be enabled, but not both simultaneously."
// +kubebuilder:validation:XValidation:rule="has(self.nodeConfigurator) || !has(self.rebooter) || self.rebooter.enabled || has(self.customContainer) && self.customContainer.enabled",message="nothing is enabled: set enabled of rebooter or of customContainer"
// +kubebuilder:validation:XValidation:rule="!has(self.nodeConfigurator) || !has(self.customContainer)",fieldPath=".nodeConfigurator",message="nodeConfigurator is the former name of customContainer: give only customContainer"
type NodeConfiguratorSpec struct {
	// Rebooter drains and reboots Kubernetes nodes by their conditions.
	// +optional
	// +kubebuilder:default={enabled: true}
	Rebooter Rebooter `json:"rebooter,omitzero"`

	// CustomContainer is a container of the user. Default: none. With the rebooter, both run in one pod.
	// +optional
	CustomContainer *CustomContainer `json:"customContainer,omitempty"`

	// Deprecated: use customContainer. An idle container that keeps the pod with the init containers alive.
	// +optional
	NodeConfigurator *IdleContainer `json:"nodeConfigurator,omitempty"`

	// InitContainers configure the node (core/v1 Container). Default: one that allows unprivileged user namespaces, in the image of slurmd.
	// +optional
	InitContainers []embedded.Container `json:"initContainers,omitempty"`

	// HostNetwork runs the pods in the network of the node. Default: true.
	// +optional
	// +kubebuilder:default=true
	HostNetwork *bool `json:"hostNetwork,omitempty"`

	// HostIPC runs the pods in the IPC namespace of the node. Default: false.
	// +optional
	// +kubebuilder:default=false
	HostIPC bool `json:"hostIPC,omitempty"`

	// ShareProcessNamespace lets the containers of a pod see each other's processes. The rebooter runs among those of the host, so the
	// two together are refused. Default: false.
	// +optional
	// +kubebuilder:default=false
	ShareProcessNamespace bool `json:"shareProcessNamespace,omitempty"`
}

// Rebooter drains and reboots Kubernetes nodes by their conditions.
type Rebooter struct {
	// Enabled runs this container.
	// +required
	Enabled bool `json:"enabled"`

	// Image is the container image. Default: the operator's.
	// +optional
	Image Image `json:"image,omitzero"`

	// Name is the name of the container. Default: rebooter.
	// +optional
	Name string `json:"name,omitempty"`

	// Command replaces the entrypoint of the image. Default: /usr/bin/rebooter.
	// +optional
	Command []string `json:"command,omitempty"`

	// Env are environment variables (core/v1 EnvVar).
	// +optional
	Env []embedded.EnvVar `json:"env,omitempty"`

	// Resources are the requests and limits of the container.
	// +optional
	// +kubebuilder:default={}
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// LivenessProbe is the probe of the container (core/v1 Probe). Default: none.
	// +optional
	LivenessProbe *embedded.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe is the probe of the container (core/v1 Probe). Default: none.
	// +optional
	ReadinessProbe *embedded.Probe `json:"readinessProbe,omitempty"`

	// Affinity is the pods' affinity (core/v1 Affinity).
	// +optional
	Affinity *embedded.Affinity `json:"affinity,omitempty"`

	// NodeSelector are labels of the Kubernetes nodes to run on. Default: all nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are taints that the pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// PriorityClassName is the name of the pods' PriorityClass.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ServiceAccountName is the ServiceAccount of the pods. Default: <name>-rebooter, which the operator makes. Either needs the rights of
	// a rebooter, which the value rebooter.serviceAccounts of the operator's chart gives.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// HostUsers false is refused: the rebooter needs the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// EvictionMethod is how pods leave a node that is drained. Default: evict.
	// +optional
	// +kubebuilder:default=evict
	// +kubebuilder:validation:Enum="";evict
	EvictionMethod string `json:"evictionMethod,omitempty"`

	// LogLevel is how much the rebooter logs. Default: info.
	// +optional
	// +kubebuilder:default=info
	// +kubebuilder:validation:Enum="";debug;info;warn;error
	LogLevel string `json:"logLevel,omitempty"`

	// LogFormat is json or plain. Default: json.
	// +optional
	LogFormat string `json:"logFormat,omitempty"`
}

// CustomContainer is a container of the user.
type CustomContainer struct {
	// Enabled runs this container.
	// +required
	Enabled bool `json:"enabled"`

	// Image is the container image. Default: that of slurmd.
	// +optional
	Image Image `json:"image,omitzero"`

	// Name is the name of the container. Default: node-sysctl-sleep.
	// +optional
	Name string `json:"name,omitempty"`

	// Command is what the container runs. Default: it sleeps.
	// +optional
	Command []string `json:"command,omitempty"`

	// Env are environment variables (core/v1 EnvVar).
	// +optional
	Env []embedded.EnvVar `json:"env,omitempty"`

	// Resources are the requests and limits of the container.
	// +optional
	// +kubebuilder:default={}
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// LivenessProbe is the probe of the container (core/v1 Probe). Default: none.
	// +optional
	LivenessProbe *embedded.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe is the probe of the container (core/v1 Probe). Default: none.
	// +optional
	ReadinessProbe *embedded.Probe `json:"readinessProbe,omitempty"`

	// Affinity is the pods' affinity (core/v1 Affinity).
	// +optional
	Affinity *embedded.Affinity `json:"affinity,omitempty"`

	// NodeSelector are labels of the Kubernetes nodes to run on. Default: all nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are taints that the pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// PriorityClassName is the name of the pods' PriorityClass.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ServiceAccountName is the ServiceAccount of the pods.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`
}

// IdleContainer is a container that does nothing.
type IdleContainer struct {
	// Enabled runs this container.
	// +required
	Enabled bool `json:"enabled"`

	// Image is the container image. Default: that of slurmd.
	// +optional
	Image Image `json:"image,omitzero"`

	// Env are environment variables (core/v1 EnvVar).
	// +optional
	Env []embedded.EnvVar `json:"env,omitempty"`

	// Resources are the requests and limits of the container.
	// +optional
	// +kubebuilder:default={}
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// LivenessProbe is the probe of the container (core/v1 Probe). Default: none.
	// +optional
	LivenessProbe *embedded.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe is the probe of the container (core/v1 Probe). Default: none.
	// +optional
	ReadinessProbe *embedded.Probe `json:"readinessProbe,omitempty"`

	// Affinity is the pods' affinity (core/v1 Affinity).
	// +optional
	Affinity *embedded.Affinity `json:"affinity,omitempty"`

	// NodeSelector are labels of the Kubernetes nodes to run on. Default: all nodes.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are taints that the pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// PriorityClassName is the name of the pods' PriorityClass.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ServiceAccountName is the ServiceAccount of the pods.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`
}

// NodeConfiguratorStatus is what is known of a NodeConfigurator.
type NodeConfiguratorStatus struct {
	StatusMetadata `json:",inline"`
}
