// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// maxOutOfServiceNodes is the length in bytes to which a list of Slurm nodes is cut in the status.
const maxOutOfServiceNodes = 1024

// outOfService groups the workers whose Slurm nodes get no new jobs by the reasons on their pods.
func outOfService(pods []corev1.Pod) []slinkyv1beta1.NodeSetOutOfService {
	groups, names := map[string]*slinkyv1beta1.NodeSetOutOfService{}, map[string][]string{}
	for i := range pods {
		c := workerpod.Condition(&pods[i], slinkyv1beta1.PodConditionOutOfService)
		if c == nil || c.Status != corev1.ConditionTrue {
			continue
		}
		g := groups[c.Reason]
		if g == nil {
			g = &slinkyv1beta1.NodeSetOutOfService{Reason: c.Reason}
			groups[c.Reason] = g
		}
		g.Count++
		if since := c.LastTransitionTime; !since.IsZero() && (g.Since == nil || since.Before(g.Since)) {
			g.Since = &since
		}
		names[c.Reason] = append(names[c.Reason], workerpod.SlurmNode(&pods[i]))
	}
	var out []slinkyv1beta1.NodeSetOutOfService
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		g := groups[reason]
		g.Nodes = shortened(hostlist.Compress(names[reason]))
		out = append(out, *g)
	}
	return out
}
