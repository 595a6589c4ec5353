// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import "strings"

// The keys of slurm.conf(5) of Slurm 22.05 to 26.05, as far as a slurmctld of one of these versions accepts them,
// separated by blanks.
const (
	// slurmSets are lists of independent options, so that the operator's and the user's can both hold. Lists that are
	// one decision (PreemptMode, LogTimeFormat, HealthCheckNodeState, PropagateResourceLimits, SuspendExcNodes …) are
	// scalars.
	slurmSets = `
	AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageParameters AccountingStorageTRES
	AccountingStoreFlags AuthAltParameters AuthAltTypes AuthInfo BcastParameters CertgenParameters CertmgrParameters
	CliFilterParameters CliFilterPlugins CommunicationParameters DebugFlags DependencyParameters
	FederationParameters GresTypes JobAcctGatherParams JobSubmitPlugins LaunchParameters LicenseParameters
	MCSParameters MetricsAuthUsers MetricsParameters MpiParams NodeFeaturesPlugins PowerParameters PreemptParameters
	PrEpPlugins PriorityFlags PriorityWeightTRES PrivateData PrologFlags ReconfigFlags SchedulerParameters
	ScronParameters SelectTypeParameters SlurmctldHttpAuthParameters SlurmctldParameters SlurmdHttpAuthParameters
	SlurmdParameters SwitchParameters TaskPlugin TaskPluginParam TLSParameters TopologyParam X11Parameters`

	// slurmLines describe something by options and may stand once per name.
	slurmLines = `
	DownNodes FrontendName NodeName NodeSet PartitionName PowerAction`

	// slurmRepeated have a plain value each time.
	slurmRepeated = `
	Epilog EpilogSlurmctld Prolog PrologSlurmctld SlurmctldHost`

	slurmScalars = `
	AccountingStorageBackupHost AccountingStorageHost AccountingStorageLoc AccountingStoragePass AccountingStoragePort
	AccountingStorageType AccountingStorageUser AccountingStoreJobComment AcctGatherEnergyType AcctGatherFilesystemType
	AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType AllowSpecResourcesUsage AuthType BackupAddr
	BackupController BatchStartTimeout BcastExclude BurstBufferParameters BurstBufferType CertgenType CertmgrType ClusterName CompleteWait
	ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef CpuFreqGovernors CredType CryptoType DataParserParameters
	DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DisableRootJobs EioTimeout EnforcePartLimits EpilogMsgTime
	EpilogTimeout ExtSensorsFreq ExtSensorsType FairShareDampeningFactor FastSchedule FirstJobId GetEnvTimeout
	GpuFreqDef GroupUpdateForce GroupUpdateTime HashPlugin HealthCheckInterval HealthCheckNodeState
	HealthCheckProgram HealthCheckTimeout HttpParserType InactiveLimit InteractiveStepOptions JobAcctGatherFrequency
	JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType
	JobCompUser JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate JobFileAppend JobRequeue
	KeepAliveTime KillOnBadExit KillWait LaunchType Licenses LogTimeFormat MailDomain MailProg MaxArraySize MaxBatchRequeue
	MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode MCSPlugin
	MessageTimeout MetricsType MinJobAge MpiDefault NamespaceType OverTimeLimit PluginDir PlugStackConfig
	PowerPlugin PreemptExemptTime PreemptMode PreemptType PrEpParameters PriorityCalcPeriod PriorityDecayHalfLife
	PriorityFavorSmall PriorityMaxAge PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin
	PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare
	PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS ProctrackType PrologEpilogTimeout PrologTimeout
	PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram RequeueExit
	RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog
	ReturnToService RoutePlugin SallocDefaultCommand SbcastParameters SchedulerTimeSlice SchedulerType SelectType SlurmctldAddr
	SlurmctldDebug SlurmctldLogFile SlurmctldPidFile SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg
	SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdPidFile SlurmdPort SlurmdSpoolDir
	SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SrunEpilog
	SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram
	SuspendRate SuspendTime SuspendTimeout SwitchType TaskEpilog TaskProlog TCPTimeout TLSType TmpFS TopologyPlugin
	TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout UrlParserType UsePAM VSizeFactor WaitTime`
)

// slurmdbdSets are the lists in slurmdbd.conf(5).
const slurmdbdSets = `AuthAltParameters AuthAltTypes AuthInfo CommunicationParameters DebugFlags Parameters PrivateData
	StorageParameters TLSParameters`

// cgroupKeys are those of cgroup.conf(5) of the same releases.
const cgroupKeys = `
	AllowedKmemSpace AllowedRAMSpace AllowedSwapSpace CgroupAutomount CgroupMountpoint CgroupPlugin CgroupReleaseAgentDir
	CgroupSlice ConstrainCores ConstrainDevices ConstrainKmemSpace ConstrainRAMSpace ConstrainSwapSpace EnableControllers
	EnableExtraControllers IgnoreSystemd IgnoreSystemdOnFailure MaxKmemPercent MaxRAMPercent MaxSwapPercent
	MemorySwappiness MinKmemSpace MinRAMSpace SignalChildrenProcesses SystemdTimeout TaskAffinity`

// gresOptions are what describes devices in gres.conf(5), and may begin a line as well.
const gresOptions = `Cores Count CPUs File Flags Links MultipleFiles Type`

// gresLines begin the lines of gres.conf(5) that describe devices; several may begin alike.
const gresLines = `Name NodeName`

// listed reports whether key is in list, whatever its case.
func listed(key, list string) bool {
	for k := range strings.FieldsSeq(list) {
		if strings.EqualFold(k, key) {
			return true
		}
	}
	return false
}

// keysOf are the keys of a file; empty for a file whose keys are not listed.
func keysOf(f File) string {
	switch f {
	case Slurm:
		return slurmSets + slurmLines + slurmRepeated + slurmScalars
	case Cgroup:
		return cgroupKeys
	case Gres:
		return gresLines + " AutoDetect " + gresOptions
	}
	return ""
}

// optionsOf are what may stand behind a key on its line; empty where that is not listed.
func (f File) optionsOf(key string) string {
	switch key = strings.ToLower(key); {
	case f == Gres:
		return gresLines + " AutoDetect " + gresOptions
	case f != Slurm:
		return ""
	case key == "partitionname":
		return partitionOptions
	case key == "nodename":
		return nodeKeys + " Feature GresConf SuspendTime TRESWeights"
	case key == "nodeset":
		return "Feature Nodes"
	}
	return ""
}
