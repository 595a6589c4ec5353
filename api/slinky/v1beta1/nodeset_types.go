// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// NodeSetSpec is what a user asks of a NodeSet.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.powerSaving) || self.?scalingMode.orValue("") != "DaemonSet"`,message="powerSaving needs scalingMode StatefulSet"
type NodeSetSpec struct {
	// ControllerRef names the Controller of the cluster that the workers join. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="controllerRef cannot be changed; make another NodeSet"
	ControllerRef ObjectReference `json:"controllerRef"`

	// Replicas is the number of workers in scaling mode StatefulSet. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// ScalingMode selects how many workers there are. StatefulSet: as many as replicas, with ordinals. DaemonSet: one
	// on each Kubernetes node that the pod template fits. Default: StatefulSet.
	// +optional
	// +kubebuilder:default=StatefulSet
	ScalingMode ScalingMode `json:"scalingMode,omitempty"`

	// PowerSaving lets Slurm decide which of the workers run: those whose nodes it has not powered down. Replicas is how
	// many there can be. Slurm.conf has to turn power saving on. Not in scaling mode DaemonSet, nor with template.spec.hostNetwork.
	// Before Slurm 25.11 srun fails in a job that wakes nodes: Slurm gives its steps the addresses that the nodes had before.
	// Default: none, all workers run.
	// Slurm: https://slurm.schedmd.com/power_save.html
	// +optional
	PowerSaving *NodeSetPowerSaving `json:"powerSaving,omitempty"`

	// OrdinalPadding is the least number of digits of the ordinal in the names of pods and Slurm nodes; 3 makes
	// worker-007 of ordinal 7. Only in scaling mode StatefulSet. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	OrdinalPadding int32 `json:"ordinalPadding,omitempty"`

	// Slurmd is the container of slurmd: a core/v1 Container, or a part of one, laid over the generated one as a
	// strategic merge patch. The API server does not look inside; a mistyped field shows as condition Stalled, with
	// its path. Default image: the operator's.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	Slurmd *embedded.Container `json:"slurmd,omitempty"`

	// Logfile is the sidecar container that copies slurmd's log to its standard output: a core/v1 Container, or a part
	// of one, laid over the generated one. Default image: that of slurmd.
	// +optional
	Logfile *embedded.Container `json:"logfile,omitempty"`

	// SSH lets users log in to the workers.
	// +optional
	SSH NodeSetSSH `json:"ssh,omitzero"`

	// Jail is the root file system that jobs see. The Controller has to have a jail, too; without it they see the root of
	// the worker's container. Default: none.
	// +optional
	Jail *Jail `json:"jail,omitempty"`

	// Munge runs munged beside slurmd, for programs of users. Slurm's commands ask it only where they are configured to use auth/munge, which
	// the Controller has to have munge for. Default: none.
	// More info: https://man7.org/linux/man-pages/man7/munge.7.html
	// +optional
	Munge *Munge `json:"munge,omitempty"`

	// Template is laid over the worker pods. Its spec.hostname is the prefix of the Slurm node names: "gpu-" makes gpu-0,
	// gpu-1 and so on. Default prefix: "<name>-".
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// ExtraConf are node parameters, as Key=Value with blanks between them, such as "Gres=gpu:8 Weight=10". Slurmd
	// registers its node with them. Values have no blanks, quotes or backslashes. Default: none.
	// Slurm: slurmd --conf, https://slurm.schedmd.com/slurmd.html#OPT_conf-%3Cnode-parameters%3E
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\s*([A-Za-z][0-9A-Za-z_]*=[^\s"\x27\\\x00-\x1f\x7f]+(\s+|$))*$')`,message="must be Key=Value with blanks between them, without quotes and backslashes"
	ExtraConf string `json:"extraConf,omitempty"`

	// Partition gives the workers a partition of their own, named like them.
	// +optional
	Partition NodeSetPartition `json:"partition,omitzero"`

	// VolumeClaimTemplates are core/v1 PersistentVolumeClaims that each worker gets its own copy of, by ordinal. The API
	// server does not look inside; a mistyped field shows as condition Stalled, with its path. A change counts only for
	// claims that are made after it.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/persistent-volume-claim-v1/
	// +optional
	// +nullable
	VolumeClaimTemplates []embedded.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// PersistentVolumeClaimRetentionPolicy controls what becomes of the claims made from volumeClaimTemplates. Default: they
	// are kept.
	// +optional
	PersistentVolumeClaimRetentionPolicy *PersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// UpdateStrategy is how workers are replaced when their template changes.
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy NodeSetUpdateStrategy `json:"updateStrategy,omitzero"`

	// DrainTimeout is how long a worker that is to go may keep running its jobs after the drain has begun, as a Go
	// duration such as 30m or 24h. When it is over, the pod is deleted and what still runs on it is lost. Default:
	// none, the operator waits until the last job ends.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(h|m|s|ms))+$') && duration(self) >= duration('0s')",message="must be a duration such as 90s, 30m or 1h30m"
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`

	// RevisionHistoryLimit is the number of old revisions of the worker template that are kept. Default: 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// MinReadySeconds is how many seconds a worker must be ready before it counts as available. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// TaintKubeNodes asked for a taint on the Kubernetes nodes that run these workers. It has no effect; condition
	// FieldsIgnored reports that. Default: false.
	//
	// Deprecated: taint the nodes yourself; worker pods tolerate nodeset.slinky.slurm.net/worker:NoExecute.
	// +optional
	// +kubebuilder:default=false
	TaintKubeNodes bool `json:"taintKubeNodes,omitempty"`

	// WorkloadDisruptionProtection keeps workers on which jobs run or may start from being evicted, by a
	// PodDisruptionBudget: until Slurm shows them drained. Default: true.
	// More info: https://kubernetes.io/docs/tasks/run-application/configure-pdb/
	// +optional
	// +kubebuilder:default=true
	WorkloadDisruptionProtection *bool `json:"workloadDisruptionProtection,omitempty"`

	// OversubscribeNode lets several workers run on one Kubernetes node. Each believes that it has the whole machine
	// unless its container has limits, so this is for trials. Default: false.
	// +optional
	// +kubebuilder:default=false
	OversubscribeNode bool `json:"oversubscribeNode,omitempty"`

	// PinToNode makes a worker come back on the Kubernetes node where its ordinal ran before, as long as that node exists
	// and the template fits it. Only in scaling mode StatefulSet. Default: false.
	// +optional
	// +kubebuilder:default=false
	PinToNode bool `json:"pinToNode,omitempty"`

	// PruneSlurmNodeRecords controls whether the records of Slurm nodes whose Kubernetes node is gone are deleted. Only in
	// scaling mode DaemonSet. Default: Never.
	// Slurm: https://slurm.schedmd.com/dynamic_nodes.html
	// +optional
	// +kubebuilder:default=Never
	PruneSlurmNodeRecords PrunePolicy `json:"pruneSlurmNodeRecords,omitempty"`

	// RequiredChecks are the names of checks that have to pass on the machine of a worker before the worker takes jobs. Its
	// Slurm node registers drained. The program that runs a check writes "Passed " and the machine into annotation
	// check.coxswain.dev/<name> of the pod. Workers that run when a name is added do not need that check. No effect with
	// powerSaving. Default: none.
	// Slurm: https://slurm.schedmd.com/slurmd.html#OPT_conf-<node-parameters>
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=52
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	RequiredChecks []string `json:"requiredChecks,omitempty"`
}

// NodeSetPowerSaving is how a NodeSet begins whose workers Slurm powers up and down.
type NodeSetPowerSaving struct {
	// Initial is how many workers run before Slurm knows them: those with the lowest ordinals. Slurm knows a worker once it has
	// registered. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Initial *int32 `json:"initial,omitempty"`
}

// ScalingMode is how many workers a NodeSet has.
//
// +kubebuilder:validation:Enum="";StatefulSet;DaemonSet
type ScalingMode string

// The scaling modes.
const (
	// ScalingModeStatefulSet runs spec.replicas workers.
	ScalingModeStatefulSet ScalingMode = "StatefulSet"
	// ScalingModeDaemonSet runs one worker on each Kubernetes node that the template fits.
	ScalingModeDaemonSet ScalingMode = "DaemonSet"
)

// PrunePolicy is whether records of Slurm nodes are deleted.
//
// +kubebuilder:validation:Enum="";Never;NodeNotFound
type PrunePolicy string

// The prune policies.
const (
	// PruneNever keeps all records.
	PruneNever PrunePolicy = "Never"
	// PruneNodeNotFound deletes the records of workers whose Kubernetes node is gone.
	PruneNodeNotFound PrunePolicy = "NodeNotFound"
)

// NodeSetSSH lets users log in to workers.
type NodeSetSSH struct {
	// Enabled runs sshd on the workers. With pam_slurm_adopt in the image, users get in only where they have a job.
	// Default: false.
	// Slurm: https://slurm.schedmd.com/pam_slurm_adopt.html
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// ExtraSshdConfig is added to the end of the generated sshd_config; it may have many lines.
	// More info: https://man7.org/linux/man-pages/man5/sshd_config.5.html
	// +optional
	ExtraSshdConfig string `json:"extraSshdConfig,omitempty"`

	// SshdConfigRef selects an sshd_config in a ConfigMap. It takes the place of the generated defaults. Host keys, the port,
	// UsePAM and, with a jail, ChrootDirectory stay as they are, whatever is in it. Default: none.
	// More info: https://man7.org/linux/man-pages/man5/sshd_config.5.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	SshdConfigRef *corev1.ConfigMapKeySelector `json:"sshdConfigRef,omitempty"`

	// SssdConfRef selects an sssd.conf, by which the workers learn the users of a directory service. Default: none.
	// More info: https://man7.org/linux/man-pages/man5/sssd.conf.5.html
	// +optional
	SssdConfRef *corev1.SecretKeySelector `json:"sssdConfRef,omitempty"`
}

// NodeSetPartition describes the partition of a NodeSet.
type NodeSetPartition struct {
	// Enabled adds the partition to slurm.conf. (Before release 1.1 of slurm-operator this was true by default.)
	// Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Config is added to the line of the partition, such as "Default=YES MaxTime=1-0". It is one line without
	// backslashes. Default: nothing.
	// Slurm: https://slurm.schedmd.com/slurm.conf.html#SECTION_PARTITION-CONFIGURATION
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x08\x0a-\x1f\x7f\\]*$')`,message="must be a single line without backslashes: it becomes part of a PartitionName line of slurm.conf"
	Config string `json:"config,omitempty"`
}

// PersistentVolumeClaimRetentionPolicy controls what becomes of the claims of a NodeSet.
type PersistentVolumeClaimRetentionPolicy struct {
	// WhenDeleted is what becomes of the claims when the NodeSet is deleted. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	WhenDeleted ClaimRetention `json:"whenDeleted,omitempty"`

	// WhenScaled is what becomes of a claim when its worker goes because replicas became smaller. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	WhenScaled ClaimRetention `json:"whenScaled,omitempty"`
}

// ClaimRetention controls what becomes of a claim.
//
// +kubebuilder:validation:Enum="";Retain;Delete
type ClaimRetention string

// The ways to treat claims that are no longer needed.
const (
	// ClaimRetain keeps the claim.
	ClaimRetain ClaimRetention = "Retain"
	// ClaimDelete deletes the claim.
	ClaimDelete ClaimRetention = "Delete"
)

// NodeSet is a set of alike workers: pods in which slurmd runs, each a node of a Slurm cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=nodesets;nss;slurmd
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desired",description="The number of workers that there should be."
// +kubebuilder:printcolumn:name="REPLICAS",type="integer",JSONPath=".status.replicas",description="The current number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods of the newest revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of pods that are ready."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why the set is ready or not."
// +kubebuilder:printcolumn:name="IDLE",type="integer",JSONPath=".status.slurmIdle",description="The number of IDLE Slurm nodes.",priority=1
// +kubebuilder:printcolumn:name="ALLOCATED",type="integer",JSONPath=".status.slurmAllocated",description="The number of ALLOCATED and MIXED Slurm nodes.",priority=1
// +kubebuilder:printcolumn:name="DOWN",type="integer",JSONPath=".status.slurmDown",description="The number of DOWN Slurm nodes.",priority=1
// +kubebuilder:printcolumn:name="DRAIN",type="integer",JSONPath=".status.slurmDrain",description="The number of Slurm nodes in DRAIN.",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="What to know about it.",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?$')",message="metadata.name must consist of lower-case letters, digits and '-', and have at most 57 characters: it becomes part of host names"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec must be given"
type NodeSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is asked for.
	// +optional
	Spec NodeSetSpec `json:"spec,omitzero"`

	// Status is what is observed. The operator writes it.
	// +optional
	Status NodeSetStatus `json:"status,omitzero"`
}

// NodeSetList is a list of NodeSets.
//
// +kubebuilder:object:root=true
type NodeSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeSet `json:"items"`
}
