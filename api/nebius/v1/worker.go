// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Worker are the nodes that run jobs: NodeSet <cluster>-worker, Slurm nodes worker-0, worker-1 and so on.
type Worker struct {
	SlurmNode `json:",inline"`

	// Size is the number of workers. It must be zero when partitions name NodeSets.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size,omitempty"`

	// Slurmd is the container of slurmd. Its memory request is the node's RealMemory.
	// See https://slurm.schedmd.com/slurm.conf.html#OPT_RealMemory
	// +optional
	Slurmd NodeContainer `json:"slurmd,omitzero"`

	// Munge is the container of munged beside slurmd, for programs of users. It runs where an image is named that is not Soperator's.
	// Default: none. See https://man7.org/linux/man-pages/man7/munge.7.html
	// +optional
	Munge NodeContainer `json:"munge,omitzero"`

	// Volumes are the volumes of the workers.
	// +optional
	Volumes WorkerVolumes `json:"volumes,omitzero"`

	// MaxUnavailable is how many workers, as a number or percentage, may be away during an update. Default: 20%.
	// +optional
	// +kubebuilder:default="20%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// Deprecated: use spec.cgroupVersion. If either is v1, v1 is used. Default: v2.
	// +optional
	// +kubebuilder:default=v2
	CgroupVersion CgroupVersion `json:"cgroupVersion,omitempty"`

	// EnableGDRCopy gives the workers GDRCopy of the NVIDIA runtime (NVIDIA_GDRCOPY=enabled). Default: false.
	// +optional
	// +kubebuilder:default=false
	EnableGDRCopy bool `json:"enableGDRCopy,omitempty"`

	// SlurmNodeExtra is text that the node carries: slurmd --extra. $NAME and ${NAME} stand for variables of the container:
	// INSTANCE_ID (the Kubernetes node), K8S_POD_NAME, K8S_POD_NAMESPACE, K8S_SERVICE_NAME, SLURM_CLUSTER_TYPE, SLURM_REAL_MEMORY
	// (MiB) and those of customEnv. No shell reads it.
	// See https://slurm.schedmd.com/slurmd.html#OPT_--extra
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	SlurmNodeExtra string `json:"slurmNodeExtra,omitempty"`

	// SSHDConfigMapRefName is the ConfigMap with an sshd_config (key sshd_config) for workers with a jail. Host keys, the port 22
	// of the pods, UsePAM and ChrootDirectory stay as they are, whatever is in it. Default: one made by the operator.
	// +optional
	SSHDConfigMapRefName string `json:"sshdConfigMapRefName,omitempty"`

	// SupervisordConfigMapRefName is the ConfigMap with a supervisord.conf. It has no effect, since workers have no supervisord:
	// a program beside slurmd is an entry of customInitContainers with restartPolicy Always.
	// +optional
	SupervisordConfigMapRefName string `json:"supervisordConfigMapRefName,omitempty"`

	// WorkerAnnotations are additional annotations of the pods.
	// +optional
	WorkerAnnotations map[string]string `json:"workerAnnotations,omitempty"`

	// HostUsers false runs the pods in a user namespace of their own. Default: false.
	// +optional
	// +kubebuilder:default=false
	HostUsers *bool `json:"hostUsers,omitempty"`
}

// WorkerVolumes are the volumes of the workers.
type WorkerVolumes struct {
	// Jail is the root file system of jobs. Default: that of the cluster, which is
	// the jail of the first of slurmctld, login pods and workers that names one, or the volume source called jail; else none.
	// +optional
	Jail *NodeVolume `json:"jail,omitempty"`

	// Spool holds /var/spool/slurmd. Default: an emptyDir. See https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmdSpoolDir
	// +optional
	Spool *NodeVolume `json:"spool,omitempty"`

	// JailSubMounts are mounts inside the jail.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	JailSubMounts []NodeVolumeMount `json:"jailSubMounts,omitempty"`

	// CustomMounts are mounts in the container.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	CustomMounts []NodeVolumeMount `json:"customMounts,omitempty"`

	// SharedMemorySize is the size of /dev/shm. Default: 64Gi.
	// +optional
	// +kubebuilder:default="64Gi"
	SharedMemorySize *resource.Quantity `json:"sharedMemorySize,omitempty"`
}

// WorkerFeature gives a feature to some of the nodes of slurmNodes.worker.
type WorkerFeature struct {
	// Name is the feature. See https://slurm.schedmd.com/slurm.conf.html#OPT_Features
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z][-._a-zA-Z0-9]*$`
	Name string `json:"name"`

	// HostlistExpr are the nodes of slurmNodes.worker that have it, such as worker-[0-3].
	// See https://slurm.schedmd.com/scontrol.html#OPT_hostlist
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[^\s=#"'\\\x00]+$`
	HostlistExpr string `json:"hostlistExpr"`

	// NodesetName also makes a line "Nodeset=<name> Feature=<feature>" that partitions can refer to. Default: none.
	// See https://slurm.schedmd.com/slurm.conf.html#OPT_NodeSet
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\s,=#"'\\\x00]*$`
	NodesetName string `json:"nodesetName,omitempty"`
}
