// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"fmt"
	"slices"
	"strings"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// dependsOnPath is the field at which cycles are reported.
const dependsOnPath = "spec.dependsOn"

// Gate is whether a check may have its first run, and whether its scheduled runs are suspended.
type Gate struct {
	// Part names what the check waits for, and Waits is why; both are empty when it may run.
	Part, Waits string
	// Rests is true if the cluster is away on purpose, so that nothing is run by schedule.
	Rests bool
}

// Open reports whether the check may have its first run.
func (g Gate) Open() bool { return g.Waits == "" }

// gate returns what a check waits for. The cases in order:
//
//	case                                 first run   runs by schedule
//	there is no such SlurmCluster        waits       rest
//	it is in maintenance                 waits       rest
//	it is not available                  waits       go on: a check may be about just that
//	a check of dependsOn is missing      waits       go on
//	a check of dependsOn is not done     waits       go on: the first run has been
func gate(in Input) Gate {
	cluster := "SlurmCluster " + in.Check.Spec.SlurmClusterRefName
	switch {
	case in.Cluster == nil:
		return Gate{Part: cluster, Waits: "does not exist", Rests: true}
	case in.Cluster.Spec.Maintenance.Downscaled():
		return Gate{Part: cluster, Waits: "is in maintenance", Rests: true}
	case in.Cluster.Status.Phase != nebiusv1.PhaseAvailable:
		return Gate{Part: cluster, Waits: "is not available yet"}
	}
	for _, dependency := range in.Check.Spec.DependsOn {
		if waits := waitsFor(in.Checks[dependency]); waits != "" {
			return Gate{Part: "ActiveCheck " + dependency, Waits: waits}
		}
	}
	return Gate{}
}

// waitsFor returns why a check holds up another one that depends on it; empty if it does not. One that has no run after creation is
// not waited for, and one of Slurm jobs that had nothing to check has done its part.
func waitsFor(check *nebiusv1alpha1.ActiveCheck) string {
	switch {
	case check == nil:
		return "does not exist"
	case check.Spec.RunAfterCreation != nil && !*check.Spec.RunAfterCreation:
		return ""
	}
	last := Last(check)
	if skipped := last == string(nebiusv1alpha1.SlurmRunSkipped) && IsSlurmJob(check); last != string(nebiusv1alpha1.K8sJobComplete) && !skipped {
		return fmt.Sprintf("has not completed, its last run is %q", last)
	}
	return ""
}

// Last returns how the last run of a check went, in the words of its status; None before the first.
func Last(check *nebiusv1alpha1.ActiveCheck) string {
	slurm, job := check.Status.SlurmJobsStatus, check.Status.K8sJobsStatus
	switch isSlurm := IsSlurmJob(check); {
	case isSlurm && slurm != nil:
		return string(slurm.LastRunStatus)
	case !isSlurm && job != nil:
		return string(job.LastJobStatus)
	}
	return "None"
}

// cycle returns the mistake of a check that depends on itself, directly or through others: none of them would ever run. A check that only
// leads to such a cycle waits.
func cycle(check *nebiusv1alpha1.ActiveCheck, checks map[string]*nebiusv1alpha1.ActiveCheck) problem.List {
	seen := map[string]bool{}
	var way func(from *nebiusv1alpha1.ActiveCheck) []string
	way = func(from *nebiusv1alpha1.ActiveCheck) []string {
		for _, next := range from.Spec.DependsOn {
			if next == check.Name {
				return []string{from.Name, next}
			}
			if checks[next] == nil || seen[next] {
				continue
			}
			seen[next] = true
			if rest := way(checks[next]); rest != nil {
				return slices.Insert(rest, 0, from.Name)
			}
		}
		return nil
	}
	found := way(check)
	if found == nil {
		return nil
	}
	return problem.List{problem.Errorf(dependsOnPath, nebiusv1alpha1.ReasonInvalidSpec,
		"%s: each waits for the next, so none ever runs; remove one of these dependencies", strings.Join(found, " -> "))}
}
