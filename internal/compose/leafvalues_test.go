// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

// leafForm is a value for leaves of a kind, or of all kinds, whose path ends in this way.
type leafForm struct {
	kind, end string
	value     any
}

// leafValues are values of leaves that accept no plain value, by the end of their path or all of it.
var leafValues = []leafForm{
	{"", ".appArmorProfile", "localhost/leaf"},
	{"", ".procMount", "Unmasked"},
	{"", ".livenessProbe", fields(`{"initialDelaySeconds": 77}`)},
	{"", ".readinessProbe", fields(`{"initialDelaySeconds": 77}`)},
	{"", ".customEnv", []any{fields(`{"name": "LEAF", "value": "a"}`)}},
	{"", ".customInitContainers", []any{fields(`{"name": "leaf", "image": "i"}`)}},
	{"", ".resources", fields(`{"cpu": "3"}`)},
	{"", ".hostUsers", true},
	{"", ".affinity", fields(`{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "leaf", "operator": "Exists"}]}]}}}`)},
	{"", ".volumeClaimTemplateSpec", fields(`{"accessModes": ["ReadWriteOnce"]}`)},
	{"", ".volumeSourceName", "home"},
	{"", ".k8sNodeFilterName", "other"},
	{"", ".mountPath", "/leaf"},
	{"", ".maxUnavailable", "7%"},
	{"SlurmCluster", "spec.slurmNodes.exporter.enabled", false},
	{"SlurmCluster", "spec.slurmNodes.login.userIsolation.enabled", true},
	{"SlurmCluster", "spec.slurmNodes.accounting.embeddedDB.enabled", true},
	{"SlurmCluster", "spec.plugStackConfig.ncclInspectorPreConf.enabled", false}, // true by default where the block is written
	{"SlurmCluster", "spec.slurmNodes.controller.volumes.spool.volumeSourceName", "scratch"},
	{"SlurmCluster", "spec.customCgroupConfig", "ConstrainCores=no"},
	{"SlurmCluster", "spec.customSlurmConfig", "KillWait=33"},
	{"SlurmCluster", "spec.partitionConfiguration.partitions[].config", "MaxTime=33"},
	{"SlurmCluster", "spec.partitionConfiguration.rawConfig", []any{"PartitionName=other"}},
	{"SlurmCluster", "spec.sConfigController.reconfigureWaitTimeout", "7m"},
	{"SlurmCluster", "spec.slurmConfig.topologyPlugin", "topology/block"},
	{"SlurmCluster", "spec.volumeSources", []any{fields(`{"name": "scratch", "emptyDir": {"medium": "Memory"}}`), fields(`{"name": "home", "emptyDir": {}}`)}},
	{"SlurmCluster", ".accountingStorageTRES", "CPU"},
	{"SlurmCluster", ".jobAcctGatherParams", "UsePss"},
	{"SlurmCluster", ".debugFlags", "Network"},
	{"SlurmCluster", ".priorityWeightTRES", "CPU=1.5"},
	{"SlurmCluster", ".endpoints", []any{"nodes"}},
	{"SlurmCluster", ".serviceMonitor.interval", "33s"},
	{"SlurmCluster", ".scrapeTimeout", "13s"},
	{"SlurmCluster", ".accountingJobsLookback", "33h"},
	{"SlurmCluster", ".collectionInterval", "33s"},
	{"SlurmCluster", ".podMonitorConfig.interval", "33s"},
	{"SlurmCluster", ".metricRelabelConfigs", []any{fields(`{"action": "drop"}`)}},
	{"SlurmCluster", ".relabelConfig", []any{fields(`{"action": "drop"}`)}},
	{"SlurmCluster", ".purgeEventAfter", "33days"}, {"SlurmCluster", ".purgeJobAfter", "33days"}, {"SlurmCluster", ".purgeResvAfter", "33days"},
	{"SlurmCluster", ".purgeStepAfter", "33days"}, {"SlurmCluster", ".purgeSuspendAfter", "33days"}, {"SlurmCluster", ".purgeTXNAfter", "33days"},
	{"SlurmCluster", ".purgeUsageAfter", "33days"},
	{"SlurmCluster", ".sshdServiceNodePort", int64(30077)},
	{"SlurmCluster", ".users[].home", "/leaf"},
	{"SlurmCluster", ".users[].shell", "/bin/leaf"},
	{"SlurmCluster", ".users[].sshAuthorizedKeys", []any{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFsaWNlYWxpY2VhbGljZWFsaWNlYWxpY2VhbGljZWFs leaf"}},
	{"SlurmCluster", ".users[].uid", int64(7777)},
	{"ActiveCheck", ".sbatchScript", "#!/bin/leaf"},
	{"ActiveCheck", ".env", []any{fields(`{"name": "LEAF", "value": "a"}`)}},
	{"ActiveCheck", ".volumeMounts", []any{fields(`{"name": "leaf", "mountPath": "/leaf"}`)}},
	{"ActiveCheck", ".volumes", []any{fields(`{"name": "leaf", "emptyDir": {}}`)}},
	{"NodeSet", "spec.docker.enabled", true},
	{"NodeSet", "spec.nodeConfig.gresConfig", []any{"Name=leaf"}},
	{"NodeSet", "spec.nodeConfig.static", "Weight=77"},
	{"NodeSet", ".volumeSource", fields(`{"emptyDir": {"medium": "Memory"}}`)},
	{"NodeSet", "spec.slurmd.volumes.jail", fields(`{"nfs": {"server": "leaf", "path": "/"}}`)},
	{"NodeSet", "spec.slurmd.volumes.spool", fields(`{"emptyDir": {"medium": "Memory"}}`)},
}

// leafNeed are fields without which a leaf does not matter, by the beginning of its path. Null removes one.
var leafNeed = []struct {
	kind, begin string
	needs       map[string]any
}{
	{"SlurmCluster", "spec.k8sNodeFilters[].name", fields(`{"spec.slurmNodes.controller.k8sNodeFilterName": null}`)},
	{"SlurmCluster", "spec.slurmNodes.accounting.mariadbOperator", fields(`{"spec.slurmNodes.accounting.mariadbOperator.enabled": true, "spec.slurmNodes.accounting.mariadbOperator.image": "i", "spec.slurmNodes.accounting.mariadbOperator.storage": {"size": "1Gi"}}`)},
	{"SlurmCluster", "spec.slurmNodes.login.userIsolation.enabled", fields(`{"spec.slurmNodes.login.sshd.resources": {"memory": "8Gi"}}`)},
	{"SlurmCluster", "spec.slurmNodes.login.userIsolation", fields(`{"spec.slurmNodes.login.userIsolation.enabled": true, "spec.slurmNodes.login.sshd.resources": {"memory": "8Gi"}}`)},
	{"SlurmCluster", "spec.slurmNodes.controller.munge", fields(`{"spec.slurmNodes.controller.munge.image": "m"}`)},
	{"SlurmCluster", "spec.slurmNodes.accounting.munge", fields(`{"spec.slurmNodes.controller.munge.image": "m", "spec.slurmNodes.accounting.munge.image": "m"}`)},
	{"SlurmCluster", "spec.slurmNodes.login.munge", fields(`{"spec.slurmNodes.login.munge.image": "m"}`)},
	{"SlurmCluster", "spec.slurmNodes.worker.munge", fields(`{"spec.slurmNodes.worker.munge.image": "m"}`)},
	{"NodeSet", "spec.munge", fields(`{"spec.munge.image.repository": "r"}`)},
	{"SlurmCluster", "spec.slurmNodes.controller.sssd.", fields(`{"spec.slurmNodes.controller.sssdConfSecretRefName": "directory"}`)},
	{"SlurmCluster", "spec.slurmNodes.controller.sssdDebugLevel", fields(`{"spec.slurmNodes.controller.sssdConfSecretRefName": "directory"}`)},
	{"SlurmCluster", "spec.slurmNodes.controller.sssdLdapCAConfigMapRefName", fields(`{"spec.slurmNodes.controller.sssdConfSecretRefName": "directory"}`)},
	{"NodeSet", "spec.sssdDebugLevel", fields(`{"spec.sssdConfSecretRefName": "directory"}`)},
	{"NodeSet", "spec.sssdLdapCAConfigMapRefName", fields(`{"spec.sssdConfSecretRefName": "directory"}`)},
	{"SlurmCluster", "spec.slurmNodes.login.sssdLdapCAConfigMapRefName", fields(`{"spec.slurmNodes.login.sssdConfSecretRefName": "directory"}`)},
	{"SlurmCluster", "spec.slurmNodes.login.sssdDebugLevel", fields(`{"spec.slurmNodes.login.sssdConfSecretRefName": "directory"}`)},
	{"NodeSet", "spec.sssd.image", fields(`{"spec.sssd.image.repository": "r"}`)},
	{"SlurmCluster", "spec.partitionConfiguration.rawConfig", fields(`{"spec.partitionConfiguration.configType": "custom"}`)},
	{"SlurmCluster", "spec.slurmNodes.exporter.accountingJobsLookback", fields(`{"spec.slurmNodes.exporter.enabled": true, "spec.slurmNodes.exporter.jobSource": "accounting"}`)},
	{"SlurmCluster", "spec.slurmNodes.exporter.exporter.image", fields(`{"spec.slurmNodes.exporter.enabled": true}`)},
	{"SlurmCluster", "spec.slurmNodes.exporter", fields(`{"spec.slurmNodes.exporter.enabled": true}`)},
	{"SlurmCluster", "spec.slurmNodes.accounting.embeddedDB.enabled", nil},
	{"SlurmCluster", "spec.slurmNodes.accounting.embeddedDB", fields(`{"spec.slurmNodes.accounting.externalDB": null, "spec.slurmNodes.accounting.embeddedDB.enabled": true}`)},
	{"SlurmCluster", "spec.slurmConfig.topologyBlockSize", fields(`{"spec.slurmConfig.topologyPlugin": "topology/block", "spec.topology": null}`)},
	{"SlurmCluster", "spec.topology.blockSize", fields(`{"spec.slurmConfig.topologyPlugin": "topology/block"}`)},
	{"SlurmCluster", "spec.slurmNodes.worker.size", fields(`{"spec.partitionConfiguration": null}`)},
}
