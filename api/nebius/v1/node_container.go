// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// NodeContainer is the container of one daemon.
type NodeContainer struct {
	// Image is the container image. Default: the operator's image for this daemon.
	// +optional
	Image string `json:"image,omitempty"`

	// Command replaces the entrypoint of the image.
	// +optional
	Command []string `json:"command,omitempty"`

	// Args replace the arguments of the image.
	// +optional
	Args []string `json:"args,omitempty"`

	// CustomEnv are additional environment variables (core/v1 EnvVar).
	// +optional
	CustomEnv []embedded.EnvVar `json:"customEnv,omitempty"`

	// ImagePullPolicy controls when the image is pulled. Default: IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum="";Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are Secrets for pulling the image; they go to the pod.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Port is the port that the daemon listens on. Default: the daemon's usual one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// Resources are requests. Limits are the same without cpu, except for slurmd, whose limits equal its requests.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// LivenessProbe replaces the operator's probe (core/v1 Probe).
	// +optional
	LivenessProbe *embedded.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe replaces the operator's probe (core/v1 Probe).
	// +optional
	ReadinessProbe *embedded.Probe `json:"readinessProbe,omitempty"`

	// SecurityLimitsConfig is the text of /etc/security/limits.conf, which PAM reads when sshd opens a session: in login pods, and in
	// workers with a jail. slurmd raises its own limits as far as it may, and its jobs have these. Default: no limits of its own.
	// See https://man7.org/linux/man-pages/man5/limits.conf.5.html
	// +optional
	SecurityLimitsConfig string `json:"securityLimitsConfig,omitempty"`

	// AppArmorProfile is unconfined, runtime/default or localhost/<profile>. Default: unconfined.
	// +optional
	// +kubebuilder:default=unconfined
	AppArmorProfile string `json:"appArmorProfile,omitempty"`

	// ProcMount is the kind of /proc of the container. Default: the one of the component.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'Default', 'Unmasked']",message="must be Default or Unmasked"
	ProcMount corev1.ProcMountType `json:"procMount,omitempty"`
}

// SlurmNode is what all components have in common.
type SlurmNode struct {
	// K8sNodeFilterName is the entry of spec.k8sNodeFilters that places the pods. Default: no constraint.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	K8sNodeFilterName string `json:"k8sNodeFilterName,omitempty"`

	// CustomInitContainers are additional init containers (core/v1 Container).
	// +optional
	CustomInitContainers []embedded.Container `json:"customInitContainers,omitempty"`

	// PriorityClass is the name of the pods' PriorityClass.
	// +optional
	PriorityClass string `json:"priorityClass,omitempty"`
}

// SSSDSettings make the users of a directory known. In login pods SSSD runs in the container of sshd. Beside slurmctld and slurmrestd it
// has a container of its own.
type SSSDSettings struct {
	// SSSD is the container of SSSD beside slurmctld. It has no effect for login pods: SSSD runs in the container of sshd, with its image.
	// Default image: that of login pods.
	// +optional
	SSSD *NodeContainer `json:"sssd,omitempty"`

	// SSSDConfSecretRefName is the Secret with sssd.conf (key sssd.conf). Default: no SSSD.
	// +optional
	SSSDConfSecretRefName string `json:"sssdConfSecretRefName,omitempty"`

	// SSSDDebugLevel is the debug level of SSSD, 0 to 9 or a bit mask. 0 leaves the level of sssd.conf. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	SSSDDebugLevel int32 `json:"sssdDebugLevel,omitempty"`

	// SSSDLdapCAConfigMapRefName is the ConfigMap with certificate authorities of LDAP servers, in PEM, under any keys. SSSD trusts
	// them all, unless sssd.conf has an ldap_tls_cacert. Default: none, SSSD trusts those of the image.
	// +optional
	SSSDLdapCAConfigMapRefName string `json:"sssdLdapCAConfigMapRefName,omitempty"`
}

// K8sNodeFilter is a named scheduling preset. Affinity, node selector and tolerations apply together.
type K8sNodeFilter struct {
	// Name is what components refer to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Affinity is the pods' affinity (core/v1 Affinity).
	// +optional
	Affinity *embedded.Affinity `json:"affinity,omitempty"`

	// NodeSelector are labels that the Kubernetes node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are taints that the pods tolerate.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
