// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// neverSuspend is the API's value for "no node is powered down", which is Slurm's default, too.
const neverSuspend = 1_000_000_000

const suspendTimePath = "spec.slurmConfig.suspendTime"

// savesPower reports whether Slurm powers any workers up and down.
func (c *composer) savesPower() bool {
	return slices.ContainsFunc(c.nodeSets, func(n nebiusv1alpha1.NodeSet) bool { return n.Spec.EphemeralNodes })
}

// powerKeys are those of power saving (slurm.conf(5)). The operator sees in Slurm's records which workers are to run, so that the
// programs have nothing to do; without them Slurm saves no power. With some ReconfigFlags Slurm keeps what it excludes over a
// reconfiguration: then a NodeSet that comes later would be powered down, so the keys are not set here.
func (c *composer) powerKeys(d *document) {
	s := &c.spec.SlurmConfig
	d.number("ResumeTimeout", s.ResumeTimeout, "spec.slurmConfig.resumeTimeout")
	if !c.savesPower() {
		if s.SuspendTime != nil && *s.SuspendTime != neverSuspend {
			d.number("SuspendTime", s.SuspendTime, suspendTimePath)
		}
		return
	}
	after := int32(neverSuspend) // Slurm powers nodes up all the same, and down when somebody asks for it
	if s.SuspendTime != nil {
		after = *s.SuspendTime
	}
	d.number("SuspendTime", &after, suspendTimePath)
	for _, kv := range [][2]string{
		{"SuspendProgram", "/bin/true"}, {"ResumeProgram", "/bin/true"},
		{"SuspendTimeout", "90"}, {"SuspendRate", "100"}, {"ResumeRate", "100"},
	} {
		d.set(kv[0], kv[1], "spec")
	}
	d.text("SuspendExcNodes", strings.Join(c.alwaysOn(), ","), "spec")
}

// alwaysOn are the nodes that Slurm is not to power down, as host lists. Slurm takes names of nodes that it does not have yet.
func (c *composer) alwaysOn() (lists []string) {
	add := func(name string, count int32) {
		if count > 0 {
			lists = append(lists, gresNodes(name, count))
		}
	}
	if worker := c.spec.SlurmNodes.Worker; worker != nil {
		add(workerName, worker.Size)
	}
	for i := range c.nodeSets {
		if n := &c.nodeSets[i]; !n.Spec.EphemeralNodes {
			add(n.Name, replicas(n))
		}
	}
	return lists
}

// powerSaving is how Slurm powers the workers of a NodeSet up and down; nil where they all run.
func powerSaving(spec *nebiusv1alpha1.NodeSetSpec) *slinkyv1beta1.NodeSetPowerSaving {
	if !spec.EphemeralNodes {
		return nil
	}
	initial := int32(1)
	if spec.InitialNumberEphemeralNodes != nil {
		initial = *spec.InitialNumberEphemeralNodes
	}
	return &slinkyv1beta1.NodeSetPowerSaving{Initial: &initial}
}

// PowerState is the object that shows which nodes of a NodeSet Slurm wants, and takes requests to change that.
func PowerState(set *nebiusv1alpha1.NodeSet) *nebiusv1alpha1.NodeSetPowerState {
	return &nebiusv1alpha1.NodeSetPowerState{
		TypeMeta:   metav1.TypeMeta{APIVersion: nebiusv1alpha1.GroupVersion.String(), Kind: "NodeSetPowerState"},
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name},
		Spec:       nebiusv1alpha1.NodeSetPowerStateSpec{NodeSetRef: set.Name},
	}
}
