// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// AccountingSlurmConfig are the keys of slurm.conf that concern accounting.
type AccountingSlurmConfig struct {
	// AccountingStorageTRES: the resources to account for, comma separated. Default: CPU,Mem,Node,VMem,Gres/gpu.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_AccountingStorageTRES
	// +optional
	// +kubebuilder:default="CPU,Mem,Node,VMem,Gres/gpu"
	// +kubebuilder:validation:Pattern=`^((Billing|CPU|Mem|VMem|Node|Energy|Pages|FS/Disk|FS/Lustre|Gres/gpu)(,)?)*$`
	AccountingStorageTRES string `json:"accountingStorageTRES,omitempty"`

	// AccountingStoreFlags: which of job_comment, job_env, job_extra, job_script, no_stdio is stored with jobs.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_AccountingStoreFlags
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	AccountingStoreFlags string `json:"accountingStoreFlags,omitempty"`

	// AcctGatherFilesystemType: the plugin that accounts for file system traffic.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_AcctGatherFilesystemType
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	AcctGatherFilesystemType string `json:"acctGatherFilesystemType,omitempty"`

	// AcctGatherInterconnectType: the plugin that accounts for network traffic.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_AcctGatherInterconnectType
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	AcctGatherInterconnectType string `json:"acctGatherInterconnectType,omitempty"`

	// AcctGatherProfileType: the plugin that profiles jobs.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_AcctGatherProfileType
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	AcctGatherProfileType string `json:"acctGatherProfileType,omitempty"`

	// JobAcctGatherFrequency: seconds between samples of running tasks; 0 samples only at their end. Default: 0.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_JobAcctGatherFrequency
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	JobAcctGatherFrequency int32 `json:"jobAcctGatherFrequency,omitempty"`

	// JobAcctGatherParams: an option of the plugin that samples jobs.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_JobAcctGatherParams
	// +optional
	// +kubebuilder:validation:Pattern=`^(NoShared|UsePss|OverMemoryKill|DisableGPUAcct)?$`
	JobAcctGatherParams string `json:"jobAcctGatherParams,omitempty"`

	// JobAcctGatherType: the plugin that samples jobs. Default: jobacct_gather/none.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_JobAcctGatherType
	// +optional
	// +kubebuilder:default="jobacct_gather/none"
	// +kubebuilder:validation:Enum="";jobacct_gather/linux;jobacct_gather/cgroup;jobacct_gather/none
	JobAcctGatherType string `json:"jobAcctGatherType,omitempty"`

	// PriorityWeightAge: how much the time a job has waited weighs in the priority of jobs. Default: 0.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_PriorityWeightAge
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	PriorityWeightAge int32 `json:"priorityWeightAge,omitempty"`

	// PriorityWeightFairshare: how much fair share weighs in the priority of jobs. Default: 0.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_PriorityWeightFairshare
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	PriorityWeightFairshare int32 `json:"priorityWeightFairshare,omitempty"`

	// PriorityWeightQOS: how much the quality of service weighs in the priority of jobs. Default: 0.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_PriorityWeightQOS
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	PriorityWeightQOS int32 `json:"priorityWeightQOS,omitempty"`

	// PriorityWeightTRES: how much resources weigh in the priority of jobs, such as "CPU=1000,Mem=2000".
	// https://slurm.schedmd.com/slurm.conf.html#OPT_PriorityWeightTRES
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	PriorityWeightTRES string `json:"priorityWeightTRES,omitempty"`
}

// SlurmdbdConfig are the keys of slurmdbd.conf that have fields of their own.
type SlurmdbdConfig struct {
	// ArchiveEvents: whether events are written to a file before they are purged. Default: yes.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_ArchiveEvents
	// +optional
	// +kubebuilder:default="yes"
	// +kubebuilder:validation:Enum="";"yes";"no"
	ArchiveEvents string `json:"archiveEvents,omitempty"`

	// ArchiveJobs: whether jobs are written to a file before they are purged. Default: yes.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_ArchiveJobs
	// +optional
	// +kubebuilder:default="yes"
	// +kubebuilder:validation:Enum="";"yes";"no"
	ArchiveJobs string `json:"archiveJobs,omitempty"`

	// ArchiveResvs: whether reservations are written to a file before they are purged. Default: yes.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_ArchiveResvs
	// +optional
	// +kubebuilder:default="yes"
	// +kubebuilder:validation:Enum="";"yes";"no"
	ArchiveResvs string `json:"archiveResvs,omitempty"`

	// ArchiveSteps: whether job steps are written to a file before they are purged. Default: no.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_ArchiveSteps
	// +optional
	// +kubebuilder:default="no"
	// +kubebuilder:validation:Enum="";"yes";"no"
	ArchiveSteps string `json:"archiveSteps,omitempty"`

	// ArchiveSuspend: whether suspensions are written to a file before they are purged. Default: no.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_ArchiveSuspend
	// +optional
	// +kubebuilder:default="no"
	// +kubebuilder:validation:Enum="";"yes";"no"
	ArchiveSuspend string `json:"archiveSuspend,omitempty"`

	// ArchiveTXN: whether transactions are written to a file before they are purged. Default: no.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_ArchiveTXN
	// +optional
	// +kubebuilder:default="no"
	// +kubebuilder:validation:Enum="";"yes";"no"
	ArchiveTXN string `json:"archiveTXN,omitempty"`

	// ArchiveUsage: whether usage is written to a file before it is purged. Default: yes.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_ArchiveUsage
	// +optional
	// +kubebuilder:default="yes"
	// +kubebuilder:validation:Enum="";"yes";"no"
	ArchiveUsage string `json:"archiveUsage,omitempty"`

	// DebugFlags: a subsystem to log in detail.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_DebugFlags
	// +optional
	// +kubebuilder:validation:Pattern=`^(AuditRPCs|DB_ARCHIVE|DB_ASSOC|DB_EVENT|DB_JOB|DB_QOS|DB_QUERY|DB_RESERVATION|DB_RESOURCE|DB_STEP|DB_TRES|DB_USAGE|Network)?$`
	DebugFlags string `json:"debugFlags,omitempty"`

	// DebugLevel: how much slurmdbd logs. Default: info.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_DebugLevel
	// +optional
	// +kubebuilder:default=info
	// +kubebuilder:validation:Enum="";quiet;fatal;error;info;verbose;debug;debug2;debug3;debug4;debug5
	DebugLevel string `json:"debugLevel,omitempty"`

	// PrivateData: what users may not see of each other, such as "accounts,jobs".
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PrivateData
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	PrivateData string `json:"privateData,omitempty"`

	// PurgeEventAfter: the age at which events are deleted, such as 12month, 30days, 24hours. Default: 1month.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PurgeEventAfter
	// +optional
	// +kubebuilder:default="1month"
	// +kubebuilder:validation:Pattern=`^([0-9]+(hours?|days?|months?)?)?$`
	PurgeEventAfter string `json:"purgeEventAfter,omitempty"`

	// PurgeJobAfter: the age at which jobs are deleted, such as 12month, 30days, 24hours. Default: 12month.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PurgeJobAfter
	// +optional
	// +kubebuilder:default="12month"
	// +kubebuilder:validation:Pattern=`^([0-9]+(hours?|days?|months?)?)?$`
	PurgeJobAfter string `json:"purgeJobAfter,omitempty"`

	// PurgeResvAfter: the age at which reservations are deleted, such as 12month, 30days, 24hours. Default: 1month.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PurgeResvAfter
	// +optional
	// +kubebuilder:default="1month"
	// +kubebuilder:validation:Pattern=`^([0-9]+(hours?|days?|months?)?)?$`
	PurgeResvAfter string `json:"purgeResvAfter,omitempty"`

	// PurgeStepAfter: the age at which job steps are deleted, such as 12month, 30days, 24hours. Default: 1month.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PurgeStepAfter
	// +optional
	// +kubebuilder:default="1month"
	// +kubebuilder:validation:Pattern=`^([0-9]+(hours?|days?|months?)?)?$`
	PurgeStepAfter string `json:"purgeStepAfter,omitempty"`

	// PurgeSuspendAfter: the age at which suspensions are deleted, such as 12month, 30days, 24hours. Default: 1month.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PurgeSuspendAfter
	// +optional
	// +kubebuilder:default="1month"
	// +kubebuilder:validation:Pattern=`^([0-9]+(hours?|days?|months?)?)?$`
	PurgeSuspendAfter string `json:"purgeSuspendAfter,omitempty"`

	// PurgeTXNAfter: the age at which transactions are deleted, such as 12month, 30days, 24hours. Default: 12month.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PurgeTXNAfter
	// +optional
	// +kubebuilder:default="12month"
	// +kubebuilder:validation:Pattern=`^([0-9]+(hours?|days?|months?)?)?$`
	PurgeTXNAfter string `json:"purgeTXNAfter,omitempty"`

	// PurgeUsageAfter: the age at which usage is deleted, such as 12month, 30days, 24hours. Default: 24month.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_PurgeUsageAfter
	// +optional
	// +kubebuilder:default="24month"
	// +kubebuilder:validation:Pattern=`^([0-9]+(hours?|days?|months?)?)?$`
	PurgeUsageAfter string `json:"purgeUsageAfter,omitempty"`

	// TCPTimeout: seconds that a connection may take to be set up. Default: 2.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_TCPTimeout
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	TCPTimeout int32 `json:"tcpTimeout,omitempty"`
}
