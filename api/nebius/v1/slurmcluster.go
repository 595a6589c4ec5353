// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SlurmCluster is a whole Slurm cluster: controller, accounting, REST API, login and worker nodes, and the root file
// system (jail) that login sessions and jobs share.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="Phase of the cluster"
// +kubebuilder:printcolumn:name="Controllers",type=string,JSONPath=`.status.conditions[?(@.type=="ControllersAvailable")].status`,description="Whether slurmctld is available"
// +kubebuilder:printcolumn:name="Workers",type=integer,JSONPath=`.status.readyWorkers`,description="Number of ready workers"
// +kubebuilder:printcolumn:name="Login",type=integer,JSONPath=`.status.readyLogin`,description="Number of ready login pods"
// +kubebuilder:printcolumn:name="SConfigCtrl",type=string,JSONPath=`.status.conditions[?(@.type=="SConfigControllerAvailable")].status`,description="Whether the writer of configuration files is available"
// +kubebuilder:printcolumn:name="Accounting",type=string,JSONPath=`.status.conditions[?(@.type=="AccountingAvailable")].status`,description="Whether accounting is available"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",message="metadata.name must have at most 40 lower case letters, digits and dashes, and begin with a letter: ClusterName and the names of Services are made of it"
type SlurmCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the wanted cluster.
	// +optional
	// +kubebuilder:default={}
	Spec SlurmClusterSpec `json:"spec,omitzero"`

	// Status is what is known of the cluster.
	// +optional
	Status SlurmClusterStatus `json:"status,omitzero"`
}

// SlurmClusterList is a list of SlurmClusters.
//
// +kubebuilder:object:root=true
type SlurmClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SlurmCluster `json:"items"`
}

// SlurmClusterSpec is the wanted cluster.
//
// +kubebuilder:validation:XValidation:rule=`self.?slurmNodes.worker.size.orValue(0) == 0 || !has(self.partitionConfiguration) || !has(self.partitionConfiguration.partitions) || !self.partitionConfiguration.partitions.exists(p, has(p.nodeSetRefs) && size(p.nodeSetRefs) > 0)`,fieldPath=".slurmNodes.worker.size",message="Worker size must be zero when NodeSetRefs are used in partition configuration"
// +kubebuilder:validation:XValidation:rule=`self.?slurmNodes.controller.k8sNodeFilterName.orValue("") == "" || (has(self.k8sNodeFilters) && self.k8sNodeFilters.exists(f, f.name == self.slurmNodes.controller.k8sNodeFilterName))`,fieldPath=".slurmNodes.controller.k8sNodeFilterName",message="must be the name of an entry of spec.k8sNodeFilters, or empty"
// +kubebuilder:validation:XValidation:rule=`self.?slurmNodes.worker.size.orValue(0) == 0 || self.?slurmNodes.worker.k8sNodeFilterName.orValue("") == "" || (has(self.k8sNodeFilters) && self.k8sNodeFilters.exists(f, f.name == self.slurmNodes.worker.k8sNodeFilterName))`,fieldPath=".slurmNodes.worker.k8sNodeFilterName",message="must be the name of an entry of spec.k8sNodeFilters, or empty"
// +kubebuilder:validation:XValidation:rule=`self.?slurmNodes.login.size.orValue(0) == 0 || self.?slurmNodes.login.k8sNodeFilterName.orValue("") == "" || (has(self.k8sNodeFilters) && self.k8sNodeFilters.exists(f, f.name == self.slurmNodes.login.k8sNodeFilterName))`,fieldPath=".slurmNodes.login.k8sNodeFilterName",message="must be the name of an entry of spec.k8sNodeFilters, or empty"
// +kubebuilder:validation:XValidation:rule=`!self.?slurmNodes.accounting.enabled.orValue(false) || self.?slurmNodes.accounting.k8sNodeFilterName.orValue("") == "" || (has(self.k8sNodeFilters) && self.k8sNodeFilters.exists(f, f.name == self.slurmNodes.accounting.k8sNodeFilterName))`,fieldPath=".slurmNodes.accounting.k8sNodeFilterName",message="must be the name of an entry of spec.k8sNodeFilters, or empty"
// +kubebuilder:validation:XValidation:rule=`!self.?slurmNodes.rest.enabled.orValue(false) || self.?slurmNodes.rest.k8sNodeFilterName.orValue("") == "" || (has(self.k8sNodeFilters) && self.k8sNodeFilters.exists(f, f.name == self.slurmNodes.rest.k8sNodeFilterName))`,fieldPath=".slurmNodes.rest.k8sNodeFilterName",message="must be the name of an entry of spec.k8sNodeFilters, or empty"
type SlurmClusterSpec struct {
	// Deprecated: GPU workers are NodeSets with spec.gpu.enabled; this field applies to slurmNodes.worker only. With
	// gpu, slurm.conf gets GresTypes=gpu and gres.conf AutoDetect. Default: gpu.
	// See https://slurm.schedmd.com/gres.conf.html#OPT_AutoDetect
	// +optional
	// +kubebuilder:default=gpu
	ClusterType ClusterType `json:"clusterType,omitempty"`

	// CRVersion is the operator version that the object was written for. It is recorded and decides nothing.
	// +optional
	CRVersion string `json:"crVersion,omitempty"`

	// CgroupVersion is the cgroup hierarchy of the Kubernetes nodes, and with it the flavour of cgroup.conf.
	// Default: v2.
	// See https://slurm.schedmd.com/cgroup.conf.html#OPT_CgroupPlugin
	// +optional
	// +kubebuilder:default=v2
	CgroupVersion CgroupVersion `json:"cgroupVersion,omitempty"`

	// CustomCgroupConfig are lines for cgroup.conf. A key given here replaces the generated one.
	// See https://slurm.schedmd.com/cgroup.conf.html
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\x00]*$`
	CustomCgroupConfig string `json:"customCgroupConfig,omitempty"`

	// CustomSlurmConfig are lines for slurm.conf, merged over the generated ones: a plain key is replaced, a list is
	// united, a repeated line (such as PartitionName) is added. See https://slurm.schedmd.com/slurm.conf.html
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\x00]*$`
	CustomSlurmConfig string `json:"customSlurmConfig,omitempty"`

	// HealthCheckConfig makes slurmd run a health check program. Default: none.
	// +optional
	HealthCheckConfig *HealthCheckConfig `json:"healthCheckConfig,omitempty"`

	// K8sNodeFilters are named scheduling presets that components refer to by k8sNodeFilterName. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	K8sNodeFilters []K8sNodeFilter `json:"k8sNodeFilters,omitempty"`

	// Maintenance puts the cluster to rest, and sets what then happens to the populate-jail Job. Default: none.
	// +optional
	// +kubebuilder:default=none
	Maintenance MaintenanceMode `json:"maintenance,omitempty"`

	// MPIConfig is mpi.conf. See https://slurm.schedmd.com/mpi.conf.html
	// +optional
	// +kubebuilder:default={}
	MPIConfig MPIConfig `json:"mpiConfig,omitzero"`

	// PartitionConfiguration defines which partitions slurm.conf has. Default: "main" and "hidden", each with all nodes.
	// See https://slurm.schedmd.com/slurm.conf.html#SECTION_PARTITION-CONFIGURATION
	// +optional
	// +kubebuilder:default={}
	PartitionConfiguration PartitionConfiguration `json:"partitionConfiguration,omitzero"`

	// PlugStackConfig is plugstack.conf: the SPANK plugins of jobs. See https://slurm.schedmd.com/spank.html
	// +optional
	// +kubebuilder:default={}
	PlugStackConfig PlugStackConfig `json:"plugStackConfig,omitzero"`

	// PopulateJail is the Job that fills the jail with a root file system. It runs only where a jail volume is given.
	// +optional
	// +kubebuilder:default={}
	PopulateJail PopulateJail `json:"populateJail,omitzero"`

	// SConfigController is the Deployment that writes configuration files into the jail.
	// +optional
	// +kubebuilder:default={}
	SConfigController SConfigController `json:"sConfigController,omitzero"`

	// Secrets are references to Secrets of the user.
	// +optional
	Secrets Secrets `json:"secrets,omitzero"`

	// SlurmConfig are the keys of slurm.conf that have fields of their own.
	// +optional
	// +kubebuilder:default={}
	SlurmConfig SlurmConfig `json:"slurmConfig,omitzero"`

	// SlurmNodes are the components of the cluster.
	// +optional
	// +kubebuilder:default={}
	SlurmNodes SlurmNodes `json:"slurmNodes,omitzero"`

	// Topology defines how topology.conf is made. See https://slurm.schedmd.com/topology.html
	// +optional
	Topology Topology `json:"topology,omitzero"`

	// UseDefaultAppArmorProfile makes an AppArmorProfile that forbids writing GPU driver files, for the main containers of login and
	// worker pods that name no other one. It needs the security-profiles-operator. Default: false.
	// +optional
	// +kubebuilder:default=false
	UseDefaultAppArmorProfile bool `json:"useDefaultAppArmorProfile,omitempty"`

	// VolumeSources are named volumes that components refer to by volumeSourceName. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	VolumeSources []VolumeSource `json:"volumeSources,omitempty"`

	// Deprecated: use spec.nodeConfig.features of NodeSets. Features of the nodes of slurmNodes.worker.
	// See https://slurm.schedmd.com/slurm.conf.html#OPT_Features
	// +optional
	// +kubebuilder:validation:MaxItems=128
	WorkerFeatures []WorkerFeature `json:"workerFeatures,omitempty"`
}

// ClusterType is what the workers of slurmNodes.worker compute with.
//
// +kubebuilder:validation:Enum="";gpu;cpu
type ClusterType string

// Cluster types.
const (
	ClusterTypeGPU ClusterType = "gpu"
	ClusterTypeCPU ClusterType = "cpu"
)

// CgroupVersion is a version of the kernel's control groups.
//
// +kubebuilder:validation:Enum="";v1;v2
type CgroupVersion string

// Versions of control groups.
const (
	CgroupV1 CgroupVersion = "v1"
	CgroupV2 CgroupVersion = "v2"
)

// MaintenanceMode is whether a cluster is put to rest.
//
// +kubebuilder:validation:Enum="";none;downscale;downscaleAndDeletePopulateJail;downscaleAndOverwritePopulateJail;skipPopulateJail
type MaintenanceMode string

// Maintenance modes.
const (
	// MaintenanceNone is normal operation.
	MaintenanceNone MaintenanceMode = "none"
	// MaintenanceDownscale scales every component to zero and leaves the populate-jail Job alone.
	MaintenanceDownscale MaintenanceMode = "downscale"
	// MaintenanceDownscaleAndDeletePopulateJail scales to zero and deletes the populate-jail Job.
	MaintenanceDownscaleAndDeletePopulateJail MaintenanceMode = "downscaleAndDeletePopulateJail"
	// MaintenanceDownscaleAndOverwritePopulateJail scales to zero and fills the jail anew, once.
	MaintenanceDownscaleAndOverwritePopulateJail MaintenanceMode = "downscaleAndOverwritePopulateJail"
	// MaintenanceSkipPopulateJail is normal operation without the populate-jail Job.
	MaintenanceSkipPopulateJail MaintenanceMode = "skipPopulateJail"
)

// Downscaled reports whether the mode scales components to zero.
func (m MaintenanceMode) Downscaled() bool {
	switch m {
	case MaintenanceDownscale, MaintenanceDownscaleAndDeletePopulateJail, MaintenanceDownscaleAndOverwritePopulateJail:
		return true
	default:
		return false
	}
}

// Secrets are references to Secrets of the user.
type Secrets struct {
	// SSHDKeysName is the Secret with the SSH host keys (ssh_host_ecdsa_key, ssh_host_ecdsa_key.pub, and the same for
	// ed25519 and rsa). Default: <cluster>-sshd-keys, generated.
	// +optional
	SSHDKeysName string `json:"sshdKeysName,omitempty"`
}

// SlurmNodes are the components of the cluster.
type SlurmNodes struct {
	// Accounting is slurmdbd and its database.
	// +optional
	// +kubebuilder:default={}
	Accounting Accounting `json:"accounting,omitzero"`

	// Controller is slurmctld.
	// +optional
	// +kubebuilder:default={}
	Controller Controller `json:"controller,omitzero"`

	// Exporter serves metrics of the cluster to Prometheus.
	// +optional
	// +kubebuilder:default={}
	Exporter Exporter `json:"exporter,omitzero"`

	// Login is where users log in with ssh.
	// +optional
	// +kubebuilder:default={}
	Login Login `json:"login,omitzero"`

	// REST is slurmrestd.
	// +optional
	// +kubebuilder:default={}
	REST REST `json:"rest,omitzero"`

	// Worker are the nodes that run jobs. NodeSets (slurm.nebius.ai/v1alpha1) are the richer way to have workers, and
	// several kinds of them. Default: no workers but those of NodeSets.
	// +optional
	Worker *Worker `json:"worker,omitempty"`
}
