// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import "strings"

// The words that slurmctld itself accepts, of all releases that were tried. It ends with any other. Names of plugins are not among them:
// a site may have its own.
const (
	debugFlags = `
	Accrue Agent AuditRPCs AuditTLS Backfill BackfillMap BurstBuffer Cgroup ConMgr CPU_Bind CpuFrequency Data DBD_Agent DB_Archive DB_Assoc
	DB_Event DB_Job DB_QOS DB_Query DB_Reservation DB_Resource DB_Step DB_TRES DB_Usage DB_WCKey Dependency Elasticsearch Energy Federation
	FrontEnd Gang GLOB_SILENCE Gres Hetjob Interconnect JAG JobAccountGather JobComp JobContainer License Metrics MPI Namespace Net NetRaw
	Network NetworkRaw NodeFeatures NO_CONF_HASH Power PowerSave Priority Profile Protocol Reservation Route Sack Script SelectType Steps
	Switch Task Thread Threads TLS TraceJobs Trigger Triggers WorkQ WorkQueue`

	prologFlags = `Alloc Contain DeferBatch ForceRequeueOnFail NoHold RunInJob Serial X11`

	selectParameters = `CR_CPU CR_CPU_Memory CR_Core CR_Core_Memory CR_Socket CR_Socket_Memory CR_Memory CR_LLN CR_ONE_TASK_PER_CORE
	CR_CORE_DEFAULT_DIST_BLOCK CR_Pack_Nodes ENFORCE_BINDING_GRES LL_SHARED_GRES
	MULTIPLE_SHARING_GRES_PJ ONE_TASK_PER_SHARING_GRES`

	taskParameters = `None Cores Sockets Threads Verbose Autobind=none Autobind=cores Autobind=sockets Autobind=threads SlurmdOffSpec
	SlurmdSpecOverride OOMKillStep`

	nodeStates = `ALLOCATED CLOUD DOWN DRAIN DRAINED DRAINING EXTERNAL FAIL FAILING FUTURE IDLE MIXED UNKNOWN`
)

// Checks of values by key, in lower case, that hold up to NewestRelease: a newer one may know other words.
//
//nolint:gochecknoglobals // constant tables
var (
	closedValues = map[string]check{
		"debugflags": each(debugFlags), "prologflags": each(prologFlags), "selecttypeparameters": each(selectParameters), "taskpluginparam": each(taskParameters),
	}
	closedPartition = map[string]check{"selecttypeparameters": partitionSelect}
	closedNode      = map[string]check{"state": oneOf(nodeStates)}
)

// partitionSelect checks SelectTypeParameters of a partition. slurmctld looks at its beginning only.
func partitionSelect(value string) error {
	for _, word := range []string{"CR_Core", "CR_Socket"} {
		if len(value) >= len(word) && strings.EqualFold(value[:len(word)], word) {
			return nil
		}
	}
	return oneOf("CR_Core CR_Core_Memory CR_Socket CR_Socket_Memory")(value)
}

// hasAllWords reports whether a release has no word that this package lacks. An empty release is any.
func hasAllWords(release string) bool {
	return release != "" && CompareReleases(release, NewestRelease) <= 0
}
