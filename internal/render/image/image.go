// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image names the container images that are used where an object names none.
package image

import "cmp"

// Set is one build of Coxswain's images: <Registry>/<component>:<Tag>.
type Set struct {
	// Registry is the part before the component's name, without a trailing slash: "ghcr.io/coxswain-hpc".
	Registry string
	// Tag is the part after the colon; it names the Slurm version and build.
	Tag string
	// KeepSoperators is true if images of Soperator that a SlurmCluster names are used as they are.
	KeepSoperators bool
	// Operator is the whole name of the operator's own image, which has sconfigcontroller, rebooter and exporter, too; empty is <Registry>/operator:<Tag>.
	Operator string
}

// Slurmctld is the image of the Slurm controller and of its sidecars.
func (s Set) Slurmctld() string { return s.of("slurmctld") }

// Slurmd is the image of workers.
func (s Set) Slurmd() string { return s.of("slurmd") }

// Slurmdbd is the image of the accounting daemon.
func (s Set) Slurmdbd() string { return s.of("slurmdbd") }

// Slurmrestd is the image of the REST API.
func (s Set) Slurmrestd() string { return s.of("slurmrestd") }

// Login is the image of login pods: sackd and sshd.
func (s Set) Login() string { return s.of("login") }

// Munge is the image of munged.
func (s Set) Munge() string { return s.of("munge") }

// MariaDB is the image of the embedded accounting database.
func (s Set) MariaDB() string { return s.of("mariadb") }

// PopulateJail is the image of the Job that fills the jail of a SlurmCluster.
func (s Set) PopulateJail() string { return s.of("populate-jail") }

// CheckJob is the image of ActiveChecks that name one of Soperator's for them, and of sackd beside checks.
func (s Set) CheckJob() string { return s.of("check-job") }

// SlurmCheckJob is the image of those that run Slurm's commands by the accounts of the jail: it has none itself.
func (s Set) SlurmCheckJob() string { return s.of("slurm-check-job") }

// SConfigController is the image of the program that writes the files of JailedConfigs.
func (s Set) SConfigController() string { return cmp.Or(s.Operator, s.of("operator")) }

// Exporter is the image of the program that shows Prometheus what a Slurm cluster does.
func (s Set) Exporter() string { return cmp.Or(s.Operator, s.of("operator")) }

// Rebooter is the image of the program that drains and reboots Kubernetes nodes.
func (s Set) Rebooter() string { return cmp.Or(s.Operator, s.of("operator")) }

func (s Set) of(component string) string {
	return s.Registry + "/" + component + ":" + s.Tag
}
