// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// maxSlurmNodes is how many nodes a slurmctld takes at most. spec.replicas has no such limit.
const maxSlurmNodes = 65536

// WorkerNames returns the names that the workers of a NodeSet have in Slurm, in their order, as far as its spec and the present Kubernetes
// nodes determine them. template is the pod spec of its workers.
func WorkerNames(n *slinkyv1beta1.NodeSet, template *corev1.PodSpec, nodes []corev1.Node) []string {
	var names []string
	switch {
	case n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet:
		for _, node := range KubeNodes(template, nodes) {
			switch {
			case node.Fit < Fits: // none is made there
			case template.HostNetwork:
				names = append(names, node.Name)
			default:
				names = append(names, node.Hostname)
			}
		}
	case template.HostNetwork: // it depends on where the scheduler puts them
	default:
		prefix := strings.TrimSuffix(n.Hostname(0), n.PaddedOrdinal(0))
		for ordinal := range min(int(n.Replicas()), maxSlurmNodes) {
			names = append(names, prefix+n.PaddedOrdinal(ordinal))
		}
	}
	return names
}

// SharedName returns the first of the names that is among the others; empty when none is.
func SharedName(names, others []string) string {
	taken := make(map[string]bool, len(others))
	for _, name := range others {
		taken[name] = true
	}
	for _, name := range names {
		if taken[name] {
			return name
		}
	}
	return ""
}

// Namesakes returns the problem at path of a worker with the same name in Slurm as a worker of another NodeSet. Two slurmds of one name are
// one node to slurmctld: the second takes the record over, and with it the jobs of the first.
func Namesakes(path, name, other, wayOut string) problem.Problem {
	return problem.Errorf(path, slinkyv1beta1.ReasonHostnameConflict,
		"a worker of NodeSet %s has host name %s as well, and in Slurm both would be the same node; %s", other, name, wayOut)
}

// RenameWorkers returns what to change in a NodeSet whose workers have names of others.
func RenameWorkers(n *slinkyv1beta1.NodeSet) string {
	if n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet {
		return "keep the NodeSets on different Kubernetes nodes by spec.template.spec.nodeSelector, or give the Kubernetes node another name for its worker by annotation " +
			slinkyv1beta1.AnnotationHostnameOverride
	}
	return "set another spec.template.spec.hostname"
}
