// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

// DropEmpty gives the fields of enums that are "" their default. Programs with Go types write "" for what nobody has filled
// in, which the API server takes for a value, so that it does not put the default in its place. The operator does so with
// everything that it reads.
func (c *SlurmCluster) DropEmpty() {
	s := &c.Spec
	otherwise(&s.ClusterType, ClusterTypeGPU)
	otherwise(&s.CgroupVersion, CgroupV2)
	otherwise(&s.Maintenance, MaintenanceNone)
	otherwise(&s.PartitionConfiguration.ConfigType, PartitionConfigDefault)
	s.PopulateJail.dropEmpty()
	nodes := &s.SlurmNodes
	otherwise(&nodes.Login.SSHDServiceType, corev1.ServiceTypeClusterIP)
	nodes.Accounting.dropEmpty()
	for _, container := range []*NodeContainer{&nodes.Controller.Slurmctld, &nodes.Login.SSHD, &nodes.Accounting.Slurmdbd, &nodes.REST.REST} {
		container.dropEmpty()
	}
	if nodes.Worker != nil {
		nodes.Worker.Slurmd.dropEmpty()
		if len(nodes.Worker.WorkerAnnotations) == 0 {
			nodes.Worker.WorkerAnnotations = nil
		}
	}
}

func (a *Accounting) dropEmpty() {
	otherwise(&a.SlurmConfig.AccountingStorageTRES, "CPU,Mem,Node,VMem,Gres/gpu")
	otherwise(&a.SlurmConfig.JobAcctGatherType, "jobacct_gather/none")
	if a.ExternalDB != nil && a.ExternalDB.Port == 0 {
		a.ExternalDB.Port = 3306
	}
	d := &a.SlurmdbdConfig
	for _, archived := range []*string{&d.ArchiveEvents, &d.ArchiveJobs, &d.ArchiveResvs, &d.ArchiveUsage} {
		otherwise(archived, "yes")
	}
	for _, archived := range []*string{&d.ArchiveSteps, &d.ArchiveSuspend, &d.ArchiveTXN} {
		otherwise(archived, "no")
	}
	otherwise(&d.DebugLevel, "info")
}

// dropEmpty leaves a container alone in which nothing is set: it was not written.
func (n *NodeContainer) dropEmpty() {
	if !reflect.ValueOf(*n).IsZero() {
		otherwise(&n.ImagePullPolicy, corev1.PullIfNotPresent)
		otherwise(&n.AppArmorProfile, "unconfined")
	}
}

// dropEmpty leaves a Job alone of which nothing is set: it was not written.
func (p *PopulateJail) dropEmpty() {
	if !reflect.ValueOf(*p).IsZero() {
		otherwise(&p.ImagePullPolicy, corev1.PullIfNotPresent)
		otherwise(&p.AppArmorProfile, "unconfined")
	}
}

func otherwise[T ~string](s *T, byDefault T) {
	if *s == "" {
		*s = byDefault
	}
}
