// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const controllerPath = "spec.slurmNodes.controller"

// stateVolume is the volume of slurmctld's state in the pod that the Controller makes.
const stateVolume = "statesave"

// controller composes slurmctld and the configuration of the whole cluster.
func (c *composer) controller(accounting *slinkyv1beta1.Accounting, files *corev1.ConfigMap, docs documents) *slinkyv1beta1.Controller {
	node := &c.spec.SlurmNodes.Controller
	container := c.container(node.Slurmctld, controllerPath+".slurmctld", withoutCPU)
	pod := c.podSpec(node.SlurmNode, node.HostUsers, node.Slurmctld, controllerPath)
	if node.ServiceAccountName != "" {
		pod.ServiceAccountName = node.ServiceAccountName
		// A user who names a ServiceAccount has programs in the pod that use it.
		pod.AutomountServiceAccountToken = new(true)
	}
	var disk storage
	c.add(&disk, false, c.clusterMounts(node.Volumes.CustomMounts, controllerPath+".volumes.customMounts")...)
	pod.Volumes, container.VolumeMounts = disk.volumes, disk.mounts
	munge := c.munge(node.Munge, controllerPath+".munge", &pod)
	sssd := c.controllerSSSD(&pod)

	out := &slinkyv1beta1.Controller{
		ObjectMeta: c.meta(c.cluster.ControllerName(), "controller"),
		Spec: slinkyv1beta1.ControllerSpec{
			ClusterName: c.cluster.Name,
			Slurmctld:   containerOverlay(container),
			Jail:        c.shared,
			Munge:       munge,
			SSSD:        sssd,
			// A changed configuration must not cost a restart of slurmctld.
			InplaceReconfigure: true,
			ConfigFileRefs:     []slinkyv1beta1.ObjectReference{{Name: files.Name}},
			Service:            slinkyv1beta1.ServiceSpec{Port: node.Slurmctld.Port},
			Metrics:            c.metrics(),
		},
	}
	if digest := c.cluster.Annotations[slinkyv1beta1.AnnotationEndJobs]; digest != "" {
		out.Annotations = map[string]string{slinkyv1beta1.AnnotationEndJobs: digest}
	}
	if accounting != nil {
		out.Spec.AccountingRef = &slinkyv1beta1.ObjectReference{Name: accounting.Name}
	}
	fields := overlayFields(pod)
	c.persistence(out, node.Volumes.Spool, fields)
	if len(fields) > 0 {
		out.Spec.Template.Spec = &embedded.PodSpec{RawExtension: embedded.From(fields)}
	}
	out.Spec.ExtraConf = c.slurmConf(out, accounting, docs)
	return out
}

// persistence sets where slurmctld keeps its state: on a claim of its own, on a claim of the user's, or on another volume.
// The latter takes the place of the generated one in fields, the overlay of the pod.
func (c *composer) persistence(out *slinkyv1beta1.Controller, spool *nebiusv1.NodeVolume, fields map[string]any) {
	const at = controllerPath + ".volumes.spool"
	mounts := c.spool(spool, stateVolume, "/", at)
	if len(mounts) == 0 {
		return
	}
	if claim := mounts[0].claim; claim != nil {
		spec, err := claim.Decode()
		c.failIf(at+".volumeClaimTemplateSpec", err)
		if spec != nil {
			out.Spec.Persistence = &slinkyv1beta1.ControllerPersistence{Enabled: new(true), PersistentVolumeClaimSpec: *spec}
		}
		return
	}
	source := mounts[0].source
	if claim := source.PersistentVolumeClaim; claim != nil {
		out.Spec.Persistence = &slinkyv1beta1.ControllerPersistence{Enabled: new(true), ExistingClaim: claim.ClaimName}
		return
	}
	out.Spec.Persistence = &slinkyv1beta1.ControllerPersistence{Enabled: new(false)}
	if source.EmptyDir != nil {
		return
	}
	volume := map[string]any{"name": stateVolume, "emptyDir": nil}
	maps.Copy(volume, fieldsOf(*source))
	volumes, _ := fields["volumes"].([]any)
	fields["volumes"] = append(volumes, volume)
}

// slurmConf is what a SlurmCluster adds to the slurm.conf that its Controller generates: the keys of Soperator, the partitions, and over
// all the user's own text. The keys are those of docs/contributors/predecessors/soperator-objects.md#keys-of-slurmconf, without those that
// need the jail or a patched Slurm.
func (c *composer) slurmConf(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting, docs documents) string {
	d := &document{findings: &c.findings, Document: conf.New(conf.Slurm)}
	cgroupsDisabled := slurmctld.CgroupsDisabled(docs.cgroup)
	c.generalKeys(d, docs)
	c.fixedKeys(d, cgroupsDisabled)
	if accounting != nil {
		c.accountingKeys(d, cgroupsDisabled)
	}
	c.partitions(d)

	c.checkCustomConfig(controller, accounting, docs)
	merged, _ := conf.Merge(d.Document, c.custom.Document, nil)
	for _, found := range merged.CheckHealthCheck() {
		c.note(!c.isRelease2411(), "spec.healthCheckConfig: "+found.Error())
	}
	data, err := merged.Bytes()
	// Every value has been checked at its source; an error here is a defect.
	c.failIf("spec", err)
	return string(data)
}

// checkCustomConfig finds the lines of the user's text that cannot be used, with their numbers. The Controller's renderer
// is asked, since it decides which keys are the operator's; merged with ours, the lines would lose their numbers.
func (c *composer) checkCustomConfig(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting, docs documents) {
	in := slurmctld.Input{Controller: controller, Accounting: accounting, Release: c.release}
	user := slurmctld.Texts{ExtraConf: c.custom, Files: map[string]config.Text{}}
	for _, name := range docs.names() {
		file := slurmctld.File{Name: name}
		in.Files.Config = append(in.Files.Config, file)
		switch name {
		case cgroupConf:
			user.Files[file.Path()] = config.Text{Document: docs.cgroup}
		case gresConf:
			user.Files[file.Path()] = config.Text{Document: docs.gres}
		}
	}
	for _, p := range slurmctld.CheckConfiguration(in, user) {
		// The Controller reports what waits: the NodeSets that exist are not known here.
		if p.Path == c.custom.Path && !p.Waiting {
			c.problems = append(c.problems, problem.Problem{Path: p.Path, Reason: ReasonInvalid, Message: p.Message})
		}
	}
}

// generalKeys are those with fields of their own.
func (c *composer) generalKeys(d *document, docs documents) {
	s := &c.spec.SlurmConfig
	const at = "spec.slurmConfig."
	if s.DefMemPerNode > 0 {
		d.set("DefMemPerNode", strconv.Itoa(int(s.DefMemPerNode)), at+"defMemPerNode")
	}
	gres := c.gresTypes()
	if slices.Contains(gres, "gpu") {
		d.number("DefCpuPerGPU", s.DefCPUPerGPU, at+"defCpuPerGPU")
	}
	d.text("GresTypes", strings.Join(gres, ","), "spec")
	d.number("CompleteWait", s.CompleteWait, at+"completeWait")
	d.text("Epilog", s.Epilog, at+"epilog")
	d.text("Prolog", s.Prolog, at+"prolog")
	d.text("TaskProlog", s.TaskProlog, at+"taskProlog")
	d.text("TaskPluginParam", s.TaskPluginParam, at+"taskPluginParam")
	d.number("MaxJobCount", s.MaxJobCount, at+"maxJobCount")
	d.number("MinJobAge", s.MinJobAge, at+"minJobAge")
	d.number("MessageTimeout", s.MessageTimeout, at+"messageTimeout")
	c.powerKeys(d)
	c.topologyKeys(d, docs)
	if h := c.spec.HealthCheckConfig; h != nil {
		d.set("HealthCheckInterval", strconv.Itoa(int(h.HealthCheckInterval)), "spec.healthCheckConfig.healthCheckInterval")
		d.text("HealthCheckProgram", h.HealthCheckProgram, "spec.healthCheckConfig.healthCheckProgram")
		var states []string
		for _, s := range h.HealthCheckNodeState {
			states = append(states, s.State)
		}
		d.text("HealthCheckNodeState", strings.Join(states, ","), "spec.healthCheckConfig.healthCheckNodeState")
	}
}

// fixedKeys are what the contract sets for every cluster. docs/decisions/024-keys-of-slurm-conf.md names those that are left out.
func (c *composer) fixedKeys(d *document, cgroupsDisabled bool) {
	for _, kv := range [][2]string{
		{"MailProg", "/usr/bin/true"},
		{"SlurmctldPidFile", "/var/run/slurmctld.pid"},
		{"SlurmdPidFile", "/var/run/slurmd.pid"},
		{"CliFilterPlugins", "cli_filter/user_defaults"},
		{"LaunchParameters", "use_interactive_step"},
		{"ScronParameters", "enable,explicit_scancel"},
		{"PropagateResourceLimits", "NONE"},
		{"SchedulerParameters", "nohold_on_prolog_fail,extra_constraints,pack_serial_at_end,salloc_wait_nodes,sbatch_wait_nodes,defer_batch," +
			"max_rpc_cnt=100,bf_continue,bf_max_time=60,bf_max_job_test=1000,bf_max_job_part=300,bf_running_job_reserve"},
		{"InactiveLimit", "0"},
		{"KillOnBadExit", "1"},
		{"KillWait", "180"},
		{"UnkillableStepTimeout", "600"},
		{"SlurmctldTimeout", "180"},
		{"SlurmdTimeout", "180"},
		{"TCPTimeout", "15"},
		{"WaitTime", "0"},
		{"SchedulerType", "sched/backfill"},
		{"SelectType", "select/cons_tres"},
		{"SelectTypeParameters", "CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK"},
		{"SlurmctldDebug", "debug"},
		{"SlurmdDebug", "debug"},
		{"DebugFlags", "Script,Power"},
		{"JobRequeue", "1"},
		{"PreemptMode", "REQUEUE"},
		{"PreemptType", "preempt/partition_prio"},
	} {
		d.set(kv[0], kv[1], "spec")
	}
	nodes := c.nodes()
	connections := strconv.Itoa(max(1024, powerOfTwo(2*nodes)))
	d.set("SlurmctldParameters", "conmgr_max_connections="+connections+",validate_nodeaddr_threads=32", "spec")
	d.set("MaxArraySize", strconv.Itoa(max(1024, 5*nodes)), "spec")
	if !cgroupsDisabled {
		// Without cgroups, the Controller chooses what works without them.
		d.set("ProctrackType", "proctrack/cgroup", "spec")
		d.set("TaskPlugin", "task/cgroup,task/affinity", "spec")
	}
	// Without cgroups, too: pam_slurm_adopt lets users in by the step that it starts on each node of a job.
	d.set("PrologFlags", "Contain", "spec")
}

// accountingKeys are those of spec.slurmNodes.accounting.slurmConfig.
func (c *composer) accountingKeys(d *document, cgroupsDisabled bool) {
	s := &c.spec.SlurmNodes.Accounting.SlurmConfig
	const at = "spec.slurmNodes.accounting.slurmConfig."
	d.set("JobCompType", "jobcomp/none", "spec.slurmNodes.accounting")
	tres := strings.FieldsFunc(s.AccountingStorageTRES, func(r rune) bool { return r == ',' })
	if !slices.Contains(c.gresTypes(), "gpu") {
		// Slurm counts only what GresTypes has.
		tres = slices.DeleteFunc(tres, func(name string) bool { return strings.EqualFold(name, "Gres/gpu") })
	}
	d.text("AccountingStorageTRES", strings.Join(tres, ","), at+"accountingStorageTRES")
	d.text("AccountingStoreFlags", s.AccountingStoreFlags, at+"accountingStoreFlags")
	d.text("AcctGatherFilesystemType", s.AcctGatherFilesystemType, at+"acctGatherFilesystemType")
	d.text("AcctGatherInterconnectType", s.AcctGatherInterconnectType, at+"acctGatherInterconnectType")
	d.text("AcctGatherProfileType", s.AcctGatherProfileType, at+"acctGatherProfileType")
	d.positive("JobAcctGatherFrequency", s.JobAcctGatherFrequency, at+"jobAcctGatherFrequency")
	d.text("JobAcctGatherParams", s.JobAcctGatherParams, at+"jobAcctGatherParams")
	if cgroupsDisabled && s.JobAcctGatherType == "jobacct_gather/cgroup" {
		c.fail(at+"jobAcctGatherType", "needs cgroups, which spec.customCgroupConfig disables; use jobacct_gather/linux")
	} else {
		d.text("JobAcctGatherType", s.JobAcctGatherType, at+"jobAcctGatherType")
	}
	d.positive("PriorityWeightAge", s.PriorityWeightAge, at+"priorityWeightAge")
	d.positive("PriorityWeightFairshare", s.PriorityWeightFairshare, at+"priorityWeightFairshare")
	d.positive("PriorityWeightQOS", s.PriorityWeightQOS, at+"priorityWeightQOS")
	d.text("PriorityWeightTRES", s.PriorityWeightTRES, at+"priorityWeightTRES")
}

// gresTypes are the generic resources of the cluster: GPUs, where it may have any, and whatever gres.conf names.
func (c *composer) gresTypes() []string {
	var out []string
	// The default of the API; GresTypes without devices is harmless.
	if c.spec.ClusterType != nebiusv1.ClusterTypeCPU || c.hasGPUs() { //nolint:staticcheck // deprecated, and in effect all the same
		out = append(out, "gpu")
	}
	for i := range c.nodeSets {
		for _, line := range c.gres[c.nodeSets[i].Name] {
			for _, o := range line.options {
				if strings.EqualFold(o.Key, "Name") && !slices.Contains(out, o.Value) {
					out = append(out, o.Value)
				}
			}
		}
	}
	return out
}

// maxNodes is the number of nodes that slurmctld accepts at most: the largest MaxNodeCount.
const maxNodes = 1 << 16

// nodes is the number of workers when all are there, or maxNodes if that is less.
func (c *composer) nodes() int {
	total := 0
	if worker := c.spec.SlurmNodes.Worker; worker != nil {
		total += int(worker.Size)
	}
	for i := range c.nodeSets {
		total += int(replicas(&c.nodeSets[i]))
	}
	return min(max(total, 0), maxNodes)
}

// powerOfTwo is the least power of two that is at least n.
func powerOfTwo(n int) int {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len(uint(n-1))
}

func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
