// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// NodeSet is one kind of workers of a SlurmCluster. Its Slurm nodes are <name>-0, <name>-1 and so on.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:resource:shortName=nset
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="Phase of the NodeSet"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Wanted number of workers"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.replicas`,description="Number of ready workers"
// +kubebuilder:printcolumn:name="Ephemeral",type=boolean,JSONPath=`.spec.ephemeralNodes`,description="Whether Slurm powers the nodes up and down"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$')",message="metadata.name must have at most 52 lower case letters, digits and dashes: the names of Slurm nodes and Services are made of it"
type NodeSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec are the wanted workers.
	// +optional
	// +kubebuilder:default={}
	Spec NodeSetSpec `json:"spec,omitzero"`

	// Status is what is known of them.
	// +optional
	Status NodeSetStatus `json:"status,omitzero"`
}

// NodeSetList is a list of NodeSets.
//
// +kubebuilder:object:root=true
type NodeSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeSet `json:"items"`
}

// AnnotationParentalClusterRef on a NodeSet without spec.clusterName names its SlurmCluster.
const AnnotationParentalClusterRef = "slurm.nebius.ai/parental-cluster-ref"

// NodeSetSpec are the wanted workers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || (type(self.maxUnavailable) == int ? (self.maxUnavailable >= 1 && self.maxUnavailable <= 500) : (self.maxUnavailable.matches('^[1-9][0-9]{0,2}%$') && int(self.maxUnavailable.find('^[0-9]+')) * self.replicas / 100 <= 500))",fieldPath=".maxUnavailable",message="maxUnavailable must resolve to no more than 500 workers"
type NodeSetSpec struct {
	// ClusterName is the SlurmCluster of the workers, in the same namespace. Default: the one of annotation
	// slurm.nebius.ai/parental-cluster-ref.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// Replicas is the number of workers. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// MaxUnavailable is how many workers, as a number or percentage, may be away or starting at a time. Default: 500.
	// +optional
	// +kubebuilder:default=500
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// UpdateStrategy is how a change reaches the workers: rollingUpdate replaces pods when they are idle or drained;
	// slurmAwareRollingUpdate asks Slurm to hand nodes over as their jobs end. Default: rollingUpdate.
	// +optional
	// +kubebuilder:default=rollingUpdate
	UpdateStrategy UpdateStrategy `json:"updateStrategy,omitempty"`

	// Slurmd is the container of slurmd.
	// +optional
	// +kubebuilder:default={}
	Slurmd Slurmd `json:"slurmd,omitzero"`

	// Munge is the container of munged beside slurmd, for programs of users. It runs where an image is named that is not Soperator's.
	// Default: none. https://man7.org/linux/man-pages/man7/munge.7.html
	// +optional
	Munge Sidecar `json:"munge,omitzero"`

	// SSSD is a container of its own for SSSD. It has no effect in this version: SSSD runs in the container of slurmd, with its image.
	// Default: none.
	// +optional
	SSSD *Sidecar `json:"sssd,omitempty"`

	// SSSDConfSecretRefName is the Secret with sssd.conf (key sssd.conf). With a jail, SSSD runs beside sshd on the workers.
	// Default: no SSSD.
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

	// NodeConfig is what slurm.conf and gres.conf have about the nodes.
	// +optional
	// +kubebuilder:default={}
	NodeConfig NodeConfig `json:"nodeConfig,omitzero"`

	// GPU sets whether the workers have GPUs.
	// +optional
	GPU GPU `json:"gpu,omitzero"`

	// Docker gives jobs a Docker daemon.
	// +optional
	Docker Docker `json:"docker,omitzero"`

	// Topology is where the nodes are in the network.
	// +optional
	Topology NodeSetTopology `json:"topology,omitzero"`

	// EphemeralNodes lets Slurm decide which of the nodes run. Default: false.
	// See https://slurm.schedmd.com/power_save.html
	// +optional
	// +kubebuilder:default=false
	EphemeralNodes bool `json:"ephemeralNodes,omitempty"`

	// InitialNumberEphemeralNodes is how many ephemeral nodes run at first. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	InitialNumberEphemeralNodes *int32 `json:"initialNumberEphemeralNodes,omitempty"`

	// EphemeralTopologyWaitTimeout is how many seconds an ephemeral node waits for its place in the network.
	// Default: 180.
	// +optional
	// +kubebuilder:default=180
	// +kubebuilder:validation:Minimum=60
	EphemeralTopologyWaitTimeout int32 `json:"ephemeralTopologyWaitTimeout,omitempty"`

	// WorkerInitRandomDelaySeconds is the longest time, in seconds, by which the start of a worker is put off at random.
	// Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	WorkerInitRandomDelaySeconds int32 `json:"workerInitRandomDelaySeconds,omitempty"`

	// ConfigMapRefSSHD is the ConfigMap with an sshd_config (key sshd_config) for workers with a jail. Host keys, the port 22 of the
	// pods, UsePAM and ChrootDirectory stay as they are, whatever is in it. Default: one made by the operator.
	// +optional
	ConfigMapRefSSHD string `json:"configMapRefSshd,omitempty"`

	// ConfigMapRefSupervisord is the ConfigMap with a supervisord.conf. It has no effect, since workers have no supervisord:
	// a program beside slurmd is an entry of customInitContainers with restartPolicy Always.
	// +optional
	ConfigMapRefSupervisord string `json:"configMapRefSupervisord,omitempty"`

	// CustomInitContainers are additional init containers (core/v1 Container).
	// +optional
	CustomInitContainers []embedded.Container `json:"customInitContainers,omitempty"`

	// ImagePullSecrets are Secrets for pulling the images.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// EnableHostUserNamespace runs the pods in the user namespace of the host. Default: false.
	// +optional
	// +kubebuilder:default=false
	EnableHostUserNamespace bool `json:"enableHostUserNamespace,omitempty"`

	// WorkerAnnotations are additional annotations of the pods.
	// +optional
	WorkerAnnotations map[string]string `json:"workerAnnotations,omitempty"`

	// PriorityClass is the name of the pods' PriorityClass.
	// +optional
	PriorityClass string `json:"priorityClass,omitempty"`

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

// UpdateStrategy is how a change reaches the workers.
//
// +kubebuilder:validation:Enum="";rollingUpdate;slurmAwareRollingUpdate
type UpdateStrategy string

// Update strategies.
const (
	UpdateStrategyRollingUpdate           UpdateStrategy = "rollingUpdate"
	UpdateStrategySlurmAwareRollingUpdate UpdateStrategy = "slurmAwareRollingUpdate"
)

// GPU sets whether the workers have GPUs.
type GPU struct {
	// Enabled makes the workers GPU workers: GresTypes=gpu. Default: false.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_GresTypes
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Nvidia are settings for GPUs of NVIDIA.
	// +optional
	Nvidia NvidiaGPU `json:"nvidia,omitzero"`
}

// NvidiaGPU are settings for GPUs of NVIDIA.
type NvidiaGPU struct {
	// GDRCopyEnabled gives the workers GDRCopy of the NVIDIA runtime (NVIDIA_GDRCOPY=enabled). Default: false.
	// +optional
	// +kubebuilder:default=false
	GDRCopyEnabled bool `json:"gdrCopyEnabled,omitempty"`
}

// Docker gives jobs a Docker daemon.
type Docker struct {
	// Enabled runs the daemon where the image of slurmd has one. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}

// NodeSetTopology is where the nodes are in the network.
type NodeSetTopology struct {
	// Fabric is the topmost switch of the nodes. NodeSets of different fabrics are not connected. Default: root.
	// +optional
	// +kubebuilder:default=root
	// +kubebuilder:validation:Pattern=`^[^\s,=#"'\\\x00]*$`
	Fabric string `json:"fabric,omitempty"`
}

// NodeConfig is what slurm.conf and gres.conf have about the nodes.
type NodeConfig struct {
	// Static are options for the line of the nodes, such as "Gres=gpu:8 Weight=10". Default: none.
	// https://slurm.schedmd.com/slurm.conf.html#SECTION_NODE-CONFIGURATION
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	Static string `json:"static,omitempty"`

	// Dynamic is text that the nodes carry: slurmd --extra. $NAME and ${NAME} stand for variables of the container: INSTANCE_ID (the
	// Kubernetes node), K8S_POD_NAME, K8S_POD_NAMESPACE, K8S_SERVICE_NAME, SLURM_CLUSTER_TYPE, SLURM_REAL_MEMORY (MiB) and those of
	// customEnv. No shell reads it. Default: none.
	// See https://slurm.schedmd.com/slurmd.html#OPT_--extra
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	Dynamic string `json:"dynamic,omitempty"`

	// Features are the features of the nodes: Features. https://slurm.schedmd.com/slurm.conf.html#OPT_Features
	// +optional
	// +kubebuilder:validation:items:Pattern=`^[^\s,=#"'\\\x00]+$`
	Features []string `json:"features,omitempty"`

	// GresConfig are options for lines of gres.conf, such as "Name=gpu Type=h100 File=/dev/nvidia[0-7]".
	// https://slurm.schedmd.com/gres.conf.html
	// +optional
	// +kubebuilder:validation:items:Pattern=`^[^\r\n\x00]*$`
	GresConfig []string `json:"gresConfig,omitempty"`

	// AutoResume false keeps Slurm from powering nodes up for jobs. Where all workers run, that is so in any case. It has no effect
	// with ephemeralNodes, or with a ResumeProgram in customSlurmConfig of the SlurmCluster: Slurm has no such setting for a
	// node. Default: true.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_ResumeProgram
	// +optional
	// +kubebuilder:default=true
	AutoResume *bool `json:"autoResume,omitempty"`
}
