// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// featuresPath is the field with the features of some of the workers of slurmNodes.worker.
const featuresPath = "spec.workerFeatures"

// addFeatures adds Soperator's variables SLURM_FEATURE_NAME, each of which names the workers with a feature
// (docs/contributors/predecessors/soperator-objects.md#variables-of-workers). Ours name nodes of slurmNodes.worker only, as one range of
// numbers, so that the image need not understand every host list.
func (c *composer) addFeatures(slurmd *corev1.Container) {
	nodes := map[string]hostlist.Set{}
	for i, feature := range c.spec.WorkerFeatures { //nolint:staticcheck // deprecated, and in effect all the same
		at := index(featuresPath, i)
		names, err := hostlist.Expand(feature.HostlistExpr, maxNodes)
		c.failIf(at+".hostlistExpr", err)
		ours := hostlist.SetOf(slices.DeleteFunc(names, func(name string) bool { return !isWorker(name) })...)
		c.note(err == nil && ours.Len() == 0, at+".hostlistExpr: none of its nodes is one of slurmNodes.worker, worker-0 and so on")
		nodes[feature.Name] = ours.Union(nodes[feature.Name])
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if set := nodes[name]; set.Len() > 0 {
			slurmd.Env = append(slurmd.Env, corev1.EnvVar{Name: "SLURM_FEATURE_" + name, Value: hostlist.Compress(set.Sorted())})
		}
	}
}

// isWorker reports whether a node can be one of slurmNodes.worker.
func isWorker(name string) bool {
	number, found := strings.CutPrefix(name, workerName+"-")
	n, err := strconv.Atoi(number)
	return found && err == nil && n < maxNodes && strconv.Itoa(n) == number
}
