// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// PartitionConfiguration defines which partitions slurm.conf has.
//
// +kubebuilder:validation:XValidation:rule="self.?configType.orValue('default') != 'structured' || (has(self.partitions) && size(self.partitions) > 0)",fieldPath=".partitions",reason=FieldValueRequired,message="Structured partition configuration requires at least one partition"
// +kubebuilder:validation:XValidation:rule="self.?configType.orValue('default') != 'custom' || !has(self.rawConfig) || self.rawConfig.all(line, line.startsWith('PartitionName'))",fieldPath=".rawConfig",message="each item of rawConfig must start with PartitionName, as in 'PartitionName=main Nodes=ALL Default=YES'"
type PartitionConfiguration struct {
	// ConfigType chooses between the built-in partitions main and hidden, with slurmNodes.worker also background (default), the lines of rawConfig (custom)
	// and the list of partitions (structured). Default: default.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:Enum="";default;custom;structured
	ConfigType PartitionConfigType `json:"configType,omitempty"`

	// Partitions are the partitions of type structured.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Partitions []Partition `json:"partitions,omitempty"`

	// RawConfig are the lines of type custom, such as "PartitionName=main Nodes=ALL Default=YES".
	// See https://slurm.schedmd.com/slurm.conf.html#OPT_PartitionName
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:items:Pattern=`^[^\r\n\x00]*$`
	RawConfig []string `json:"rawConfig,omitempty"`
}

// PartitionConfigType is how partitions are described.
type PartitionConfigType string

// Ways to describe partitions.
const (
	PartitionConfigDefault    PartitionConfigType = "default"
	PartitionConfigCustom     PartitionConfigType = "custom"
	PartitionConfigStructured PartitionConfigType = "structured"
)

// Partition is one partition of slurm.conf.
type Partition struct {
	// Name is the name of the partition: PartitionName. See https://slurm.schedmd.com/slurm.conf.html#OPT_PartitionName
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\s,=#"'\\\x00]+$`
	Name string `json:"name"`

	// Config are options for the line of the partition, such as "Default=YES MaxTime=INFINITE State=UP".
	// See https://slurm.schedmd.com/slurm.conf.html#SECTION_PARTITION-CONFIGURATION
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	Config string `json:"config,omitempty"`

	// IsAll gives the partition all nodes: Nodes=ALL. Default: false.
	// See https://slurm.schedmd.com/slurm.conf.html#OPT_Nodes_1
	// +optional
	// +kubebuilder:default=false
	IsAll bool `json:"isAll,omitempty"`

	// NodeSetRefs are the NodeSets whose nodes the partition has.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	NodeSetRefs []string `json:"nodeSetRefs,omitempty"`
}
