// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// SlurmConfig are the keys of slurm.conf that have fields of their own. Everything else goes into
// spec.customSlurmConfig.
type SlurmConfig struct {
	// CompleteWait: seconds that nodes of a completing job are kept from other jobs. Default: 5.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_CompleteWait
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	CompleteWait *int32 `json:"completeWait,omitempty"`

	// DefCpuPerGPU: CPUs per GPU of jobs that do not ask for any. Default: 4.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_DefCpuPerGPU
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=0
	DefCPUPerGPU *int32 `json:"defCpuPerGPU,omitempty"`

	// DefMemPerNode: memory per node, in MiB, of jobs that do not ask for any; 0 is all of it. Default: 0.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_DefMemPerNode
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	DefMemPerNode int32 `json:"defMemPerNode,omitempty"`

	// Epilog: the program that slurmd runs on every node after a job. Default: none.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_Epilog
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	Epilog string `json:"epilog,omitempty"`

	// MaxJobCount: the most jobs that slurmctld keeps at a time. Default: 20000.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_MaxJobCount
	// +optional
	// +kubebuilder:default=20000
	// +kubebuilder:validation:Minimum=0
	MaxJobCount *int32 `json:"maxJobCount,omitempty"`

	// MessageTimeout: seconds that a message between daemons may take. Default: 60.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_MessageTimeout
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	MessageTimeout *int32 `json:"messageTimeout,omitempty"`

	// MinJobAge: seconds that slurmctld remembers a finished job. Default: 1800.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_MinJobAge
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=0
	MinJobAge *int32 `json:"minJobAge,omitempty"`

	// Prolog: the program that slurmd runs on every node before a job. Default: none.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_Prolog
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	Prolog string `json:"prolog,omitempty"`

	// ResumeTimeout: seconds in which a powered-up node must be ready. Default: 1800.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_ResumeTimeout
	// +optional
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	ResumeTimeout *int32 `json:"resumeTimeout,omitempty"`

	// SuspendTime: seconds after which an idle node is powered down. Default: 1000000000, never.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_SuspendTime
	// +optional
	// +kubebuilder:default=1000000000
	SuspendTime *int32 `json:"suspendTime,omitempty"`

	// TaskPluginParam: options of the task plugin. Default: none.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_TaskPluginParam
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	TaskPluginParam string `json:"taskPluginParam,omitempty"`

	// TaskProlog: the program that runs as the user before each task. Default: none.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_TaskProlog
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	TaskProlog string `json:"taskProlog,omitempty"`

	// Deprecated: use spec.topology.blockSize, which wins. BlockSizes in topology.conf. Default: 18.
	// https://slurm.schedmd.com/topology.conf.html#OPT_BlockSizes
	// +optional
	// +kubebuilder:default=18
	// +kubebuilder:validation:Minimum=1
	TopologyBlockSize int32 `json:"topologyBlockSize,omitempty"`

	// TopologyParam: options of the topology plugin. Default: SwitchAsNodeRank.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_TopologyParam
	// +optional
	// +kubebuilder:default=SwitchAsNodeRank
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	TopologyParam *string `json:"topologyParam,omitempty"`

	// TopologyPlugin: topology/tree and topology/block make a topology.conf; anything else makes none.
	// Default: topology/tree.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_TopologyPlugin
	// +optional
	// +kubebuilder:default="topology/tree"
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	TopologyPlugin *string `json:"topologyPlugin,omitempty"`
}

// Topology defines how topology.conf is made.
type Topology struct {
	// BlockSize is the number of nodes of a block, for topology/block: BlockSizes. Default: 18.
	// https://slurm.schedmd.com/topology.conf.html#OPT_BlockSizes
	// +optional
	// +kubebuilder:default=18
	// +kubebuilder:validation:Minimum=1
	BlockSize int32 `json:"blockSize,omitempty"`
}

// BlockSize returns the number of nodes of a block, from whichever of the two fields is given.
func (s *SlurmClusterSpec) BlockSize() int32 {
	if s.Topology.BlockSize > 0 {
		return s.Topology.BlockSize
	}
	return s.SlurmConfig.TopologyBlockSize
}

// MPIConfig is mpi.conf.
type MPIConfig struct {
	// PMIxEnv: environment variables for PMIx, separated by semicolons. Default: OMPI_MCA_btl_tcp_if_include=eth0.
	// https://slurm.schedmd.com/mpi.conf.html#OPT_PMIxEnv
	// +optional
	// +kubebuilder:default="OMPI_MCA_btl_tcp_if_include=eth0"
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	PMIxEnv *string `json:"pmixEnv,omitempty"`
}

// HealthCheckConfig makes slurmd run a health check program.
type HealthCheckConfig struct {
	// HealthCheckInterval: seconds between two runs; 0 turns them off.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_HealthCheckInterval
	// +required
	// +kubebuilder:validation:Minimum=0
	HealthCheckInterval int32 `json:"healthCheckInterval"`

	// HealthCheckProgram: the absolute path of the program.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_HealthCheckProgram
	// +required
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	HealthCheckProgram string `json:"healthCheckProgram"`

	// HealthCheckNodeState: in which states of a node the program runs.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_HealthCheckNodeState
	// +required
	// +kubebuilder:validation:MinItems=1
	HealthCheckNodeState []HealthCheckNodeState `json:"healthCheckNodeState"`
}

// HealthCheckNodeState is one of the states in which the health check program runs.
type HealthCheckNodeState struct {
	// State is the state. CYCLE spreads the runs of all nodes over the interval.
	// +required
	// +kubebuilder:validation:Enum=ALLOC;ANY;CYCLE;IDLE;NONDRAINED_IDLE;MIXED
	State string `json:"state"`
}
