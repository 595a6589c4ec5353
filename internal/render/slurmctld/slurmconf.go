// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

const (
	slurmConfFile  = "slurm.conf"
	cgroupConfFile = "cgroup.conf"
	stateRoot      = "/var/spool/slurmctld"

	// failoverSeconds is how long a slurmctld has to be silent, and its heartbeat in the saved state old, before a backup takes
	// over. A client that asks the backup before that sleeps for half of it, and asks again.
	failoverSeconds = 5

	// defaultCgroupConf is cgroup.conf when the user brings none. There is no systemd in containers.
	defaultCgroupConf = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
)

// ownedKeys are the keys that only the operator may set, since all daemons depend on them.
var ownedKeys = conf.Owned{ //nolint:gochecknoglobals // a constant list
	"ClusterName", "SlurmUser", "SlurmctldHost", "SlurmctldPort", "SlurmdPort", "StateSaveLocation", "AuthType", "CredType", "AuthAltTypes",
	"AuthAltParameters:jwt_key", "AuthAltParameters:jwks", "AccountingStorageHost", "AccountingStoragePort", "SlurmctldLogFile", "SlurmdLogFile",
	"SlurmctldParameters:" + stampItem,
}

// mungeSocketItem is the item of AuthInfo with the path of munged's socket.
const mungeSocketItem = "socket"

// CgroupsDisabled reports whether a cgroup.conf turns control groups off.
func CgroupsDisabled(d *conf.Document) bool {
	plugin, _ := d.Get("CgroupPlugin")
	return strings.EqualFold(plugin, "disabled")
}

// slurmConf is slurm.conf with the user's extraConf merged into it. Blocks and keys follow the newest Slinky
// (docs/contributors/predecessors/slinky-objects.md#slurmconf), and a few that a cluster of pods cannot do without.
func slurmConf(in Input, user Texts) (*conf.Document, error) {
	c := in.Controller
	d := conf.New(conf.Slurm)
	general(d, in)
	if !c.Spec.External {
		d.Section("LOGGING")
		d.Add("SlurmctldLogFile", "/var/log/slurm/slurmctld.log")
		d.Add("SlurmSchedLogFile", "/var/log/slurm/slurmctld.log")
		d.Add("SlurmdLogFile", "/var/log/slurm/slurmd.log")
	}
	cgroups := !CgroupsDisabled(user.cgroup(in.Files))
	plugins(d, c, cgroups)
	gres := gresTypes(in)
	if len(gres) > 0 {
		d.Add("GresTypes", strings.Join(gres, ","))
	}
	accounting(d, in.Accounting, cgroups)
	if in.Accounting != nil && slices.Contains(gres, "gpu") {
		d.Add("AccountingStorageTRES", "gres/gpu")
	}
	if c.Spec.External {
		return d, nil
	}
	timeouts(d, user.ExtraConf.Document)
	limits(d, user.ExtraConf.Document)
	scripts(d, in.Files)
	err := nodeSets(d, in.NodeSets)
	owned := ownedKeys
	if c.Spec.Munge != nil {
		owned = slices.Concat(ownedKeys, conf.Owned{"AuthInfo:" + mungeSocketItem})
	}
	merged, mergeErr := config.Lay(d, user.ExtraConf, owned)
	return merged, errors.Join(err, mergeErr)
}

// stampItem is the item of SlurmctldParameters that carries the digest of the configuration. A slurmctld ignores items that it does not
// know, and returns all of them when it is asked for the configuration that it has loaded. So the operator learns which one that is
// (docs/decisions/005-config-stamp.md).
const stampItem = "coxswain_config"

// stamp puts the digest into slurm.conf.
func stamp(d *conf.Document, digest string) { d.Add("SlurmctldParameters", stampItem+"="+digest) }

// Stamp returns the digest among the items of SlurmctldParameters; empty if it is not among them.
func Stamp(parameters []string) string {
	for _, item := range parameters {
		if name, digest, ok := strings.Cut(item, "="); ok && strings.EqualFold(name, stampItem) {
			return digest
		}
	}
	return ""
}

// LiveDigest is the digest that a slurm.conf of the operator's is stamped with; empty when it has none.
func LiveDigest(live *conf.Document) string {
	parameters, _ := live.Get("SlurmctldParameters")
	return Stamp(strings.Split(parameters, ","))
}

func general(d *conf.Document, in Input) {
	c := in.Controller
	d.Section("GENERAL")
	d.Add("ClusterName", c.ClusterName())
	d.Add("SlurmUser", pod.SlurmUser)
	if c.Spec.External {
		d.Add("SlurmctldHost", c.Host())
		d.Add("SlurmctldPort", strconv.Itoa(int(c.Spec.ExternalConfig.Port)))
		return
	}
	for i := range int(c.Replicas()) {
		d.Add("SlurmctldHost", c.PodName(i)+"("+c.PodHost(i)+")")
	}
	if c.Replicas() > 1 {
		// Slurm's default has the backup wait for two minutes.
		d.Add("SlurmctldTimeout", strconv.Itoa(failoverSeconds))
	}
	d.Add("SlurmctldPort", strconv.Itoa(int(c.ServicePort())))
	d.Add("StateSaveLocation", StateDir(c))
	d.Add("SlurmdUser", "root")
	d.Add("SlurmdPort", strconv.Itoa(int(slinkyv1beta1.SlurmdPort)))
	d.Add("SlurmdSpoolDir", "/var/spool/slurmd")
	// A worker pod that comes back after it did not respond is a healthy node, which need not wait for an administrator.
	d.Add("ReturnToService", "2")
	// Nodes register themselves; slurmctld needs the number that may come.
	d.Add(maxNodeCount, strconv.Itoa(tableOfNodes(in)))
	// The images have no mail program, and slurmctld complains at each start of one that is missing.
	d.Add("MailProg", "/usr/bin/true")
}

// StateDir is where slurmctld saves its state.
func StateDir(c *slinkyv1beta1.Controller) string { return stateRoot + "/" + c.ClusterName() }

func plugins(d *conf.Document, c *slinkyv1beta1.Controller, cgroups bool) {
	d.Section("PLUGINS & PARAMETERS")
	d.Add("AuthType", "auth/slurm")
	d.Add("CredType", "cred/slurm")
	d.Add("AuthInfo", "use_client_ids")
	d.Add("AuthAltTypes", "auth/jwt")
	if c.Spec.External {
		return
	}
	if c.Spec.Munge != nil {
		// Each of the two without the other, or without munged, keeps slurmctld from starting.
		d.Add("AuthInfo", mungeSocketItem+"="+pod.MungeSocket)
		d.Add("AuthAltTypes", "auth/munge")
	}
	d.Add("AuthAltParameters", "jwt_key="+pod.EtcSlurm+"/"+pod.JwtKeyFile)
	if c.Spec.JwksKeyRef != nil {
		d.Add("AuthAltParameters", "jwks="+pod.EtcSlurm+"/"+pod.JwksFile)
	}
	d.Add("SlurmctldParameters", "enable_configless,reconfig_on_restart")
	// Jobs look their user up through slurmstepd, so that workers need no directory service.
	d.Add("LaunchParameters", "enable_nss_slurm")
	if !cgroups {
		// Slurm's default, proctrack/cgroup, is fatal without cgroups.
		d.Add("ProctrackType", "proctrack/linuxproc")
		d.Add("TaskPlugin", "task/affinity")
	}
	if c.Spec.Metrics.Enabled {
		d.Add("MetricsType", "metrics/openmetrics")
	}
}

// By default Slurm waits for a prolog or an epilog for ever. So a job whose epilog hangs stays COMPLETING, and its node is neither free
// nor drained. A script that runs longer than this is ended, and its node is drained; so it is longer than a working script takes.
const scriptSeconds = 3600

// unkillableSeconds is how long processes of a job may outlive it before Slurm drains the node. Slurm's default, a minute, drains nodes whose
// file server was away for a moment.
const unkillableSeconds = 180

// timeouts bounds how long a job may be COMPLETING, where the user does not set it.
func timeouts(d, user *conf.Document) {
	d.Section("TIMEOUTS")
	// All releases have this key. Beside PrologTimeout and EpilogTimeout of 26.05 it counts where they are not set.
	d.Add("PrologEpilogTimeout", strconv.Itoa(scriptSeconds))
	// slurm.conf(5) wants it to be five times MessageTimeout at least. Where that is longer Slurm's own default follows it.
	text, _ := user.Get("MessageTimeout")
	if message, err := strconv.Atoi(text); text == "" || err == nil && 5*message <= unkillableSeconds {
		d.Add("UnkillableStepTimeout", strconv.Itoa(unkillableSeconds))
	}
}

func accounting(d *conf.Document, a *slinkyv1beta1.Accounting, cgroups bool) {
	d.Section("ACCOUNTING")
	if a == nil {
		d.Add("AccountingStorageType", "accounting_storage/none")
		d.Add("JobAcctGatherType", "jobacct_gather/none")
		return
	}
	d.Add("AccountingStorageType", "accounting_storage/slurmdbd")
	d.Add("AccountingStorageHost", a.Host())
	d.Add("AccountingStoragePort", strconv.Itoa(int(a.Port())))
	if !cgroups {
		d.Add("JobAcctGatherType", "jobacct_gather/linux")
	}
}

// gresTypes are the generic resources that NodeSets say they have: slurmctld counts none that it is not told of. Slinky's
// first version names gpu in any case, its later ones leave GresTypes to extraConf, with which these unite.
func gresTypes(in Input) []string {
	if in.Controller.Spec.External {
		return nil
	}
	var out []string
	for _, set := range in.NodeSets {
		node, _ := conf.ParseNodeConf(set.Spec.ExtraConf) // the NodeSet reports mistakes
		out = append(out, node.GresNames()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// scripts adds a line for each script. Those of slurmctld have their full path; those of slurmd are bare names, which
// Slurm ships to the nodes with the rest of the configuration.
func scripts(d *conf.Document, files Files) {
	d.Section("SLURMCTLD PROLOG & EPILOG")
	for _, name := range names(files.PrologSlurmctld) {
		d.Add("PrologSlurmctld", pod.EtcSlurm+"/"+name)
	}
	for _, name := range names(files.EpilogSlurmctld) {
		d.Add("EpilogSlurmctld", pod.EtcSlurm+"/"+name)
	}
	d.Section("PROLOG & EPILOG")
	for _, name := range names(files.Prolog) {
		d.Add("Prolog", name)
	}
	for _, name := range names(files.Epilog) {
		d.Add("Epilog", name)
	}
}

func names(files []File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nodeSets adds the NodeSet line of each set and, where it is asked for, its partition.
func nodeSets(d *conf.Document, sets []slinkyv1beta1.NodeSet) error {
	sets = slices.SortedFunc(slices.Values(sets), func(a, b slinkyv1beta1.NodeSet) int { return cmp.Compare(a.Name, b.Name) })
	d.Section("NODESET & PARTITION")
	var errs []error
	taken := map[string]string{}
	for _, set := range sets {
		name := set.SlurmName()
		if err := hostlist.CheckName(name); err != nil {
			errs = append(errs, problem.Errorf("", config.ReasonInvalid, "NodeSet %s, spec.template.spec.hostname: %v", set.Name, err))
			continue
		}
		if other, ok := taken[name]; ok {
			errs = append(errs, problem.Errorf("", config.ReasonInvalid,
				"NodeSets %s and %s are both called %s in Slurm; give one of them another spec.template.spec.hostname", other, set.Name, name))
			continue
		}
		taken[name] = set.Name
		d.Add("NodeSet", name, conf.Option{Key: "Feature", Value: name})
	}
	for _, set := range sets {
		if !set.Spec.Partition.Enabled || taken[set.SlurmName()] != set.Name {
			continue
		}
		options, err := conf.ParseOptions(set.Spec.Partition.Config)
		if err != nil {
			errs = append(errs, problem.Errorf("", config.ReasonInvalid, "NodeSet %s, spec.partition.config: %v", set.Name, err))
			continue
		}
		options = append([]conf.Option{{Key: "Nodes", Value: set.SlurmName()}}, options...)
		d.Add("PartitionName", set.SlurmName(), options...)
	}
	return errors.Join(errs...)
}
