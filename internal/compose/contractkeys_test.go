// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// A contractKey is a key that Soperator renders into slurm.conf: docs/contributors/predecessors/soperator-objects.md#keys-of-slurmconf.
type contractKey struct {
	key string
	// contract is its value there, in its newest form, and ours the one here. Empty stands for no such key.
	contract, ours string
	// why they differ.
	why string
}

// contractCluster is a SlurmCluster that gives every key of the contract that depends on a field a reason to be there.
const contractCluster = `{clusterType: gpu,
  slurmConfig: {defMemPerNode: 1000, epilog: /e, prolog: /p, taskProlog: /t, taskPluginParam: Verbose},
  healthCheckConfig: {healthCheckInterval: 90, healthCheckProgram: /h, healthCheckNodeState: [{state: IDLE}, {state: CYCLE}]},
  slurmNodes: {worker: {size: 2}, accounting: {enabled: true, embeddedDB: {enabled: true},
    slurmConfig: {accountingStoreFlags: job_comment, jobAcctGatherType: jobacct_gather/linux, priorityWeightAge: 3}}}}`

// contractKeys is every key of docs/contributors/predecessors/soperator-objects.md#keys-of-slurmconf, in its order.
func contractKeys() []contractKey {
	same := func(key, value string) contractKey { return contractKey{key, value, value, ""} }
	const (
		authWhy  = "auth/slurm needs no munge in every pod (docs/decisions/024-keys-of-slurm-conf.md)"
		powerWhy = "Slurm's record of a node says whether its worker runs (docs/decisions/023-power-saving-by-slurms-word.md)"
		logWhy   = "a file in the pod, which a sidecar prints: the daemons' standard output is not lost"
	)
	return []contractKey{
		same("ClusterName", "demo"),
		{"SlurmctldHost", "demo-controller-0(demo-controller-svc)", "demo-controller-0(demo-controller.slurm)", "the name of our Service"},
		{"AuthType", "auth/munge", "auth/slurm", authWhy},
		{"CredType", "cred/munge", "cred/slurm", authWhy},
		{"AuthInfo", "", "use_client_ids", authWhy},
		same("DefMemPerNode", "1000"), same("DefCpuPerGPU", "4"), same("CompleteWait", "5"), same("Epilog", "/e"), same("Prolog", "/p"),
		same("TaskProlog", "/t"), same("TaskPluginParam", "Verbose"), same("MaxJobCount", "20000"), same("MinJobAge", "1800"), same("MessageTimeout", "60"),
		{"TopologyPlugin", "topology/tree", "", "no switch is known: see topology_test.go"},
		{"TopologyParam", "SwitchAsNodeRank", "", "belongs to topology/tree"},
		same("GresTypes", "gpu"),
		{"MpiDefault", "pmix", "", "Debian's Slurm 26.05 has no mpi/pmix, and srun fails without the plugin of its default"},
		same("MailProg", "/usr/bin/true"),
		{"PluginDir", "/usr/lib/slurm", "", "slurmctld ends if it does not exist; our images have their plugins where Slurm looks by itself"},
		same("ProctrackType", "proctrack/cgroup"), same("ReturnToService", "2"), same("SlurmctldPidFile", "/var/run/slurmctld.pid"),
		same("SlurmctldPort", "6817"), same("SlurmdPidFile", "/var/run/slurmd.pid"), same("SlurmdPort", "6818"),
		same("SlurmdSpoolDir", "/var/spool/slurmd"),
		{"SlurmUser", "root", "slurm", "slurmctld needs no rights of root"},
		{"SlurmdUser", "", "root", "Slurm's default, said since SlurmUser is another one"},
		{"StateSaveLocation", "/var/spool/slurmctld", "/var/spool/slurmctld/demo", "the claim of a Controller is mounted there"},
		same("TaskPlugin", "task/cgroup,task/affinity"), same("CliFilterPlugins", "cli_filter/user_defaults"),
		{"LaunchParameters", "use_interactive_step", "enable_nss_slurm,use_interactive_step", "jobs look their user up through slurmstepd"},
		same("ScronParameters", "enable,explicit_scancel"), same("PropagateResourceLimits", "NONE"),
		same("SchedulerParameters", "nohold_on_prolog_fail,extra_constraints,pack_serial_at_end,salloc_wait_nodes,sbatch_wait_nodes,defer_batch,"+
			"max_rpc_cnt=100,bf_continue,bf_max_time=60,bf_max_job_test=1000,bf_max_job_part=300,bf_running_job_reserve"),
		same("HealthCheckInterval", "90"), same("HealthCheckProgram", "/h"), same("HealthCheckNodeState", "IDLE,CYCLE"),
		same("InactiveLimit", "0"), same("KillOnBadExit", "1"), same("KillWait", "180"), same("UnkillableStepTimeout", "600"),
		{"PrologEpilogTimeout", "", "3600", "Slurm waits for a hung epilog for ever, and its job holds the node and the removal of its worker"},
		same("SlurmctldTimeout", "180"), same("SlurmdTimeout", "180"), same("TCPTimeout", "15"), same("WaitTime", "0"),
		{
			"SlurmctldParameters", "conmgr_max_connections=1024,conmgr_threads=32,validate_nodeaddr_threads=32,enable_stepmgr",
			"enable_configless,reconfig_on_restart,conmgr_max_connections=1024,validate_nodeaddr_threads=32",
			"26.05 warns of more than two threads for each CPU, which may hang it; a slurmctld 26.05 with enable_stepmgr has aborted; slurmds get their files from slurmctld",
		},
		same("PrologFlags", "Contain"),
		{"RebootProgram", "/opt/bin/slurm/reboot.sh", "", "our image has no such program, and a pod does not reboot its machine"},
		{"PowerAction", "soperator-worker-handoff Location=slurmd Program=/opt/bin/slurm/worker_handoff.py", "", "needs a patched Slurm"},
		{"ResumeProgram", "/opt/soperator/bin/power_resume.sh", "", powerWhy},
		{"ResumeFailProgram", "/opt/soperator/bin/power_resume_fail.sh", "", powerWhy},
		{"SuspendProgram", "/opt/soperator/bin/power_suspend.sh", "", powerWhy},
		{"SuspendTimeout", "90", "", powerWhy},
		{"ResumeRate", "100", "", powerWhy},
		{"SuspendRate", "100", "", powerWhy},
		{"ReconfigFlags", "KeepPowerSaveSettings", "", powerWhy},
		{"SuspendExcNodes", "worker-[0-1]", "", powerWhy},
		same("ResumeTimeout", "1800"), same("SchedulerType", "sched/backfill"), same("SelectType", "select/cons_tres"),
		same("SelectTypeParameters", "CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK"),
		same("SlurmctldDebug", "debug"), same("SlurmdDebug", "debug"), same("DebugFlags", "Script,Power"),
		{"SlurmctldLogFile", "/dev/null", "/var/log/slurm/slurmctld.log", logWhy},
		{"SlurmSchedLogFile", "", "/var/log/slurm/slurmctld.log", logWhy},
		{"SlurmdLogFile", "/dev/null", "/var/log/slurm/slurmd.log", logWhy},
		same("MaxNodeCount", "1024"), same("MaxArraySize", "1024"), same("JobRequeue", "1"), same("PreemptMode", "REQUEUE"),
		same("PreemptType", "preempt/partition_prio"), same("MetricsType", "metrics/openmetrics"),
		same("AccountingStorageType", "accounting_storage/slurmdbd"),
		{"AccountingStorageHost", "demo-accounting-svc.slurm.svc.cluster.local", "demo-accounting.slurm", "the name of our Service"},
		{"AccountingStorageUser", "accounting", "", "gone by Slurm 26.05, which complains of it"},
		same("AccountingStoragePort", "6819"), same("JobCompType", "jobcomp/none"),
		same("AccountingStorageTRES", "CPU,Mem,Node,VMem,Gres/gpu"), same("AccountingStoreFlags", "job_comment"), same("JobAcctGatherType", "jobacct_gather/linux"), same("PriorityWeightAge", "3"),
		same("AuthAltTypes", "auth/jwt"),
		{"AuthAltParameters", "jwt_key=/var/spool/slurmctld/jwt_hs256.key", "jwt_key=/etc/slurm/jwt.key", "the key is a Secret, not a part of the state"},
		{"include", "slurm_k8s_extra.conf.noedit", "", "the user's text is merged: a line of it replaces the generated one"},
	}
}

// renderedConf is the slurm.conf that a composed cluster ends up with.
func renderedConf(t testing.TB, out Output) string {
	t.Helper()
	rendered := slurmctld.Render(rendererInput(out))
	if len(rendered.Problems) > 0 {
		t.Fatal(rendered.Problems.Message())
	}
	text := rendered.Objects[0].(*corev1.ConfigMap).Data["slurm.conf"]
	return regexp.MustCompile(`,coxswain_config=[0-9a-f]+`).ReplaceAllString(text, "")
}

// TestEveryKeyOfTheContractIsThereOrHasAReason compares slurm.conf with the table, in both directions.
func TestEveryKeyOfTheContractIsThereOrHasAReason(t *testing.T) {
	out := Cluster(load(t).cluster(t, contractCluster))
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	document, mistakes := conf.Parse(conf.Slurm, renderedConf(t, out))
	if len(mistakes) > 0 {
		t.Fatal(mistakes[0])
	}
	rows := contractKeys()
	for _, row := range rows {
		got, ok := document.Get(row.key)
		if i := slices.IndexFunc(document.Entries(), func(e conf.Entry) bool { return e.Key == row.key }); !ok && i >= 0 {
			got = document.Entries()[i].Value
		}
		if got != row.ours {
			t.Errorf("%s=%s, want %q", row.key, got, row.ours)
		}
		if (row.contract != row.ours) != (row.why != "") {
			t.Errorf("%s: the contract says %q, we say %q, because %q", row.key, row.contract, row.ours, row.why)
		}
	}
	for _, e := range document.Entries() {
		known := slices.ContainsFunc(rows, func(row contractKey) bool { return strings.EqualFold(row.key, e.Key) })
		if !known && e.Key != "" && e.Key != "PartitionName" && e.Key != "NodeSet" {
			t.Errorf("%s=%s is not in the table", e.Key, e.Value)
		}
	}
}

// TestUsersReplaceKeysOfTheContract sets keys that every cluster gets.
func TestUsersReplaceKeysOfTheContract(t *testing.T) {
	out := Cluster(load(t).cluster(t, `{customSlurmConfig: "KillWait=33\nSlurmctldDebug=info\nMpiDefault=pmi2\nSlurmctldParameters=enable_stepmgr\nDebugFlags=Backfill"}`))
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	text := renderedConf(t, out)
	for _, line := range []string{
		"KillWait=33", "SlurmctldDebug=info", "MpiDefault=pmi2", "DebugFlags=Script,Power,Backfill",
		"SlurmctldParameters=enable_configless,reconfig_on_restart,conmgr_max_connections=1024,validate_nodeaddr_threads=32,enable_stepmgr",
	} {
		if n := strings.Count("\n"+text, "\n"+line+"\n"); n != 1 {
			t.Errorf("%s is there %d times:\n%s", line, n, text)
		}
	}
}

// TestSlurmctldTakesTheKeysOfTheContract starts the slurmctld of both releases with what is composed, but for what only pods
// have: names of hosts, directories and the database.
func TestSlurmctldTakesTheKeysOfTheContract(t *testing.T) {
	roots := realslurm.Roots(t)
	d := load(t)
	for name, in := range map[string]Input{
		"every key": d.cluster(t, contractCluster), "minimal": d.file(t, "minimal"), "flat": d.cluster(t, "{slurmConfig: {topologyPlugin: topology/flat}}"), "nodesets": d.file(t, "nodesets"),
	} {
		text := renderedConf(t, Cluster(in))
		for _, root := range roots {
			t.Run(name+" "+root.Release, func(t *testing.T) { takesTheKeys(t, root, text) })
		}
	}
}

func takesTheKeys(t *testing.T, root realslurm.Root, text string) {
	inBox := []string{
		"SlurmctldHost=.*", "SlurmctldHost=box", "StateSaveLocation=.*", "StateSaveLocation=/mnt/state", "/var/log/slurm/.*", "/mnt/slurm.log",
		"AccountingStorageType=.*", "AccountingStorageType=accounting_storage/none", "jwt_key=.*", "jwt_key=/etc/slurm/jwt_hs256.key", "AccountingStorageTRES=.*", "AccountingStorageTRES=CPU", "SlurmctldPidFile=.*", "SlurmctldPidFile=/run/slurmctld/pid",
	}
	if root.Release == "24.11" {
		inBox = append(inBox, "MetricsType=.*", "") // the Controller's renderer asks which release it is
	}
	for i := 0; i < len(inBox); i += 2 {
		text = regexp.MustCompile(inBox[i]).ReplaceAllString(text, inBox[i+1])
	}
	box := realslurm.Open(t, root, "")
	if err := os.WriteFile(box.Path("etc/slurm/slurm.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(box.Path("etc/slurm/slurm.conf"), 0o644); err != nil {
		t.Fatal(err)
	}
	box.StartController()
	config := box.Run("scontrol", "show", "config")
	for key, want := range map[string]string{
		"SlurmctldDebug": "debug", "DebugFlags": "Power,Script", "CliFilterPlugins": "cli_filter/user_defaults", "KillWait": "180 sec", "JobRequeue": "1",
		"InactiveLimit": "0 sec", "WaitTime": "0 sec", "ProctrackType": "proctrack/cgroup", "SchedulerType": "sched/backfill",
	} {
		if !regexp.MustCompile(`(?m)^` + key + ` += ` + regexp.QuoteMeta(want) + `\s*$`).MatchString(config) {
			t.Errorf("slurmctld does not have %s=%s:\n%s", key, want, config)
		}
	}
	log, err := os.ReadFile(box.Path("slurm.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log) + box.Logs()) {
		if regexp.MustCompile(`defunct|obsolete|deprecated|more than once|nrecognized|ignored|outside of the suggested|Invalid`).MatchString(line) {
			t.Errorf("slurmctld complains: %s", line)
		}
	}
}
