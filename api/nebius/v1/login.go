// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Login is where users log in with ssh.
type Login struct {
	SlurmNode    `json:",inline"`
	SSSDSettings `json:",inline"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// Size is the number of login pods. Default: 0, no login.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size,omitempty"`

	// SSHD is the container of sshd. Its default port is 22; workers use the same.
	// +optional
	SSHD NodeContainer `json:"sshd,omitzero"`

	// Munge is the container of munged beside sshd, for programs of users. It runs where an image is named that is not Soperator's.
	// Default: none. https://man7.org/linux/man-pages/man7/munge.7.html
	// +optional
	Munge NodeContainer `json:"munge,omitzero"`

	// Users are the ordinary users of the cluster, for clusters without a directory. They exist on login and worker
	// nodes, beside those of SSSD.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Users []slinkyv1beta1.User `json:"users,omitempty"`

	// SSHRootPublicKeys are the public keys that may log in as root. Default: none.
	// +optional
	// +kubebuilder:validation:items:Pattern=`^[^\r\n\x00]*\n?$`
	SSHRootPublicKeys []string `json:"sshRootPublicKeys,omitempty"`

	// SSHDConfigMapRefName is the ConfigMap with an sshd_config (key sshd_config). Host keys, the port 22 of the pods, UsePAM and
	// ChrootDirectory stay as they are, whatever is in it. Default: one made by the operator.
	// +optional
	SSHDConfigMapRefName string `json:"sshdConfigMapRefName,omitempty"`

	// SSHDServiceType is the type of Service <cluster>-login-svc. Default: ClusterIP, which opens nothing to the
	// outside; reach it from within the Kubernetes cluster, or by "kubectl port-forward".
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum="";LoadBalancer;NodePort;ClusterIP
	SSHDServiceType corev1.ServiceType `json:"sshdServiceType,omitempty"`

	// SSHDServiceAnnotations are annotations of the Service.
	// +optional
	SSHDServiceAnnotations map[string]string `json:"sshdServiceAnnotations,omitempty"`

	// SSHDServiceLoadBalancerIP is the address to ask of the load balancer.
	// +optional
	SSHDServiceLoadBalancerIP string `json:"sshdServiceLoadBalancerIP,omitempty"`

	// SSHDServiceLoadBalancerSourceRanges are the networks that may reach the load balancer, such as 192.0.2.0/24.
	// Default: all.
	// +optional
	SSHDServiceLoadBalancerSourceRanges []string `json:"sshdServiceLoadBalancerSourceRanges,omitempty"`

	// SSHDServiceNodePort is the port on the Kubernetes nodes, for NodePort and LoadBalancer; 0 leaves the choice to
	// Kubernetes. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XValidation:rule="self == 0 || (self >= 30000 && self <= 32767)",message="must be 0 or between 30000 and 32767"
	SSHDServiceNodePort int32 `json:"sshdServiceNodePort,omitempty"`

	// UserIsolation bounds what each ssh user may take of a login pod.
	// +optional
	UserIsolation *UserIsolation `json:"userIsolation,omitempty"`

	// Volumes are the volumes of the login pods.
	// +optional
	Volumes LoginVolumes `json:"volumes,omitzero"`
}

// LoginVolumes are the volumes of the login pods.
type LoginVolumes struct {
	// Jail is the root file system of login sessions. Default: that of the cluster, which is
	// the jail of the first of slurmctld, login pods and workers that names one, or the volume source called jail; else none.
	// +optional
	Jail *NodeVolume `json:"jail,omitempty"`

	// JailSubMounts are mounts inside the jail.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	JailSubMounts []NodeVolumeMount `json:"jailSubMounts,omitempty"`

	// CustomMounts are mounts in the container.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	CustomMounts []NodeVolumeMount `json:"customMounts,omitempty"`
}

// UserIsolation bounds what each ssh user may take of a login pod, with a control group per user.
//
// +kubebuilder:validation:XValidation:rule="!has(self.memoryHigh) || !has(self.memoryMax) || quantity(string(self.memoryHigh)).compareTo(quantity(string(self.memoryMax))) <= 0",fieldPath=".memoryHigh",message="memoryHigh must not exceed memoryMax"
type UserIsolation struct {
	// Enabled puts each user into a control group. It takes a jail, and Kubernetes nodes with cgroup v2. Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// CPUWeight is cpu.weight of each user. Default: 100.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	CPUWeight int64 `json:"cpuWeight,omitempty"`

	// MemoryHigh is memory.high of each user: more than that is slowed down. Default: 80 % of the container's limit.
	// +optional
	MemoryHigh *resource.Quantity `json:"memoryHigh,omitempty"`

	// MemoryMax is memory.max of each user: more than that is killed. Default: 90 % of the container's limit.
	// +optional
	MemoryMax *resource.Quantity `json:"memoryMax,omitempty"`
}
