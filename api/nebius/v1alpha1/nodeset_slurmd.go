// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// Slurmd is the container of slurmd.
type Slurmd struct {
	// Image is the container image. Default: the operator's.
	// +optional
	Image Image `json:"image,omitzero"`

	// Resources are requests and limits alike. Memory is the node's RealMemory.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_RealMemory
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// Port is the port of slurmd: Port of the nodes. Default: 6818.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_Port
	// +optional
	// +kubebuilder:default=6818
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// Deprecated: use spec.cgroupVersion of the SlurmCluster. If either is v1, v1 is used. Default: v2.
	// +optional
	// +kubebuilder:default=v2
	// +kubebuilder:validation:Enum="";v1;v2
	CgroupVersion string `json:"cgroupVersion,omitempty"`

	// CustomEnv are additional environment variables (core/v1 EnvVar).
	// +optional
	CustomEnv []embedded.EnvVar `json:"customEnv,omitempty"`

	// LivenessProbe replaces the operator's probe (core/v1 Probe).
	// +optional
	LivenessProbe *embedded.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe replaces the operator's probe (core/v1 Probe).
	// +optional
	ReadinessProbe *embedded.Probe `json:"readinessProbe,omitempty"`

	// Security are limits of the container.
	// +optional
	Security ContainerSecurity `json:"security,omitzero"`

	// Volumes are the volumes of the worker.
	// +optional
	// +kubebuilder:default={}
	Volumes SlurmdVolumes `json:"volumes,omitzero"`
}

// Sidecar is the container of munged or SSSD.
type Sidecar struct {
	// Image is the container image. Default: the operator's.
	// +optional
	Image Image `json:"image,omitzero"`

	// Resources are requests. Limits are the same without cpu.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`

	// LivenessProbe replaces the operator's probe (core/v1 Probe).
	// +optional
	LivenessProbe *embedded.Probe `json:"livenessProbe,omitempty"`

	// ReadinessProbe replaces the operator's probe (core/v1 Probe).
	// +optional
	ReadinessProbe *embedded.Probe `json:"readinessProbe,omitempty"`

	// Security are limits of the container.
	// +optional
	Security ContainerSecurity `json:"security,omitzero"`
}

// SlurmdVolumes are the volumes of a worker.
type SlurmdVolumes struct {
	// Jail is the root file system of jobs (core/v1 VolumeSource). Default: the jail of the SlurmCluster, if any.
	// +optional
	Jail *embedded.VolumeSource `json:"jail,omitempty"`

	// Spool holds /var/spool/slurmd (core/v1 VolumeSource), or has as its only member volumeClaimTemplateSpec (core/v1
	// PersistentVolumeClaimSpec), which makes one PersistentVolumeClaim per worker. Default: an emptyDir.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmdSpoolDir
	// +optional
	Spool *embedded.VolumeSource `json:"spool,omitempty"`

	// JailSubMounts are mounts inside the jail.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	JailSubMounts []SlurmdVolumeMount `json:"jailSubMounts,omitempty"`

	// CustomVolumeMounts are mounts in the container.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	CustomVolumeMounts []SlurmdVolumeMount `json:"customVolumeMounts,omitempty"`

	// SharedMemorySize is the size of /dev/shm. Default: 64Gi.
	// +optional
	// +kubebuilder:default="64Gi"
	SharedMemorySize *resource.Quantity `json:"sharedMemorySize,omitempty"`

	// PersistentVolumeClaimRetentionPolicy controls what becomes of the claims of workers that are gone.
	// +optional
	// +kubebuilder:default={}
	PersistentVolumeClaimRetentionPolicy ClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitzero"`
}

// ClaimRetentionPolicy controls what becomes of the claims of workers that are gone.
type ClaimRetentionPolicy struct {
	// WhenDeleted is for the deletion of the NodeSet. Default: Delete.
	// +optional
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum="";Retain;Delete
	WhenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`

	// WhenScaled is for workers that are scaled away. Default: Delete.
	// +optional
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum="";Retain;Delete
	WhenScaled appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// SlurmdVolumeMount is a volume and where it is mounted.
//
// +kubebuilder:validation:XValidation:rule="has(self.volumeSource) != has(self.volumeClaimTemplateSpec)",message="exactly one of volumeSource and volumeClaimTemplateSpec must be given"
type SlurmdVolumeMount struct {
	// Name is the name of the mount and of the volume in the pod.
	// +required
	Name string `json:"name"`

	// MountPath is the absolute path of the mount.
	// +required
	MountPath string `json:"mountPath"`

	// SubPath is the path within the volume. Default: its root.
	// +optional
	SubPath string `json:"subPath,omitempty"`

	// ReadOnly mounts without permission to write.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// VolumeSource is the volume (core/v1 VolumeSource).
	// +optional
	VolumeSource *embedded.VolumeSource `json:"volumeSource,omitempty"`

	// VolumeClaimTemplateSpec makes one PersistentVolumeClaim per pod (core/v1 PersistentVolumeClaimSpec).
	// +optional
	VolumeClaimTemplateSpec *embedded.PersistentVolumeClaimSpec `json:"volumeClaimTemplateSpec,omitempty"`
}
