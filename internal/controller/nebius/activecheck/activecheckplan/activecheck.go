// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package activecheckplan decides about ActiveChecks: when one may run, which CronJob and Job it is made of, and what its Jobs report. For a
// check of type slurmJob it decides as well which Slurm jobs a Job stands for, and what follows their ends.
//
// A check is a CronJob of its name. So "kubectl create job --from=cronjob/NAME" runs one by hand. The run after creation is a Job
// beside it that the ActiveCheck owns itself. The limits of the CronJob's history do not count it, and it is made once.
package activecheckplan

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// Input is an ActiveCheck and what is known about its surroundings.
type Input struct {
	Check *nebiusv1alpha1.ActiveCheck
	// Cluster is the SlurmCluster that the check names; nil if there is none, or if it is being deleted.
	Cluster *nebiusv1.SlurmCluster
	// Checks are all ActiveChecks of the namespace by name, those without that are being deleted.
	Checks map[string]*nebiusv1alpha1.ActiveCheck
	// Template is the PodTemplate of spec.podTemplateNameRef; nil if the spec names none.
	Template *corev1.PodTemplate
	// Script is the batch script of spec.slurmJobSpec.sbatchScriptRefName; empty while it is not known.
	Script string
	// Stand is what a check of type k8sJob gets that names an image of Soperator; nil where it names another.
	Stand *Stand
	// Access is how Slurm's commands in a check of type k8sJob reach the cluster; nil where the check asks for none, or it is not known.
	Access *Access
	// Sources are the values that variables of Slurm jobs refer to.
	Sources map[Source]string
	// GPUs is true if workers of the cluster are meant to have GPUs. It is known only if a run is about to be submitted.
	GPUs bool
	// CronJob is the CronJob of the check; nil while there is none.
	CronJob *batchv1.CronJob
	// Jobs are the Jobs of the check: those that its CronJob owns, and the run after creation.
	Jobs []batchv1.Job
	// MachineJobs are those that look at the machine of a worker, and Workers the worker pods that need the check.
	MachineJobs []batchv1.Job
	Workers     []Worker
}

// A Stand is what stands for an image of Soperator.
type Stand struct {
	// Image is ours of the same role, and Account the ServiceAccount whose token its scripts ask Kubernetes with.
	Image, Account string
}

// An Access is how Slurm's commands reach a cluster.
type Access struct {
	// Image is that of sackd, which gives them credentials.
	Image string
	// Key is the cluster's, and Endpoint where its slurmctlds are: HOST:PORT, separated by commas.
	Key      corev1.SecretKeySelector
	Endpoint string
}

// Output is what a check is made of.
type Output struct {
	render.Output
	// Gate is whether the check may run.
	Gate Gate
	// FirstRunDue is true if the check is to run after creation, and has not run yet.
	FirstRunDue bool
	// Marks are what worker pods are to show of the check.
	Marks []Mark
}

// Decide returns the objects that a check is made of.
func Decide(in Input) Output {
	var out Output
	out.Problems = append(out.Problems, cycle(in.Check, in.Checks)...)
	var template corev1.PodTemplateSpec
	if IsSlurmJob(in.Check) {
		template = out.slurmTemplate(in)
	} else {
		out.ignoreSlurm(in.Check)
		template = out.podTemplate(in)
	}
	out.Gate, out.FirstRunDue = gate(in), runsFirst(in)
	out.onMachines(in, template)
	if len(out.Problems) > 0 || in.CronJob == nil && !out.Gate.Open() {
		return out
	}
	out.Add(cronJob(in, template, out.Gate))
	// The Job comes after the CronJob: where another CronJob has that name, nothing is run.
	// The same where the API server does not let the operator alone run the Jobs.
	if out.Gate.Open() && out.FirstRunDue && in.CronJob != nil && (!IsSlurmJob(in.Check) || managedBy(in.CronJob)) {
		out.Add(initialRun(in, template))
	}
	return out
}

// ignoreSlurm lists the fields for Slurm jobs in a check that is a Kubernetes Job.
func (o *Output) ignoreSlurm(check *nebiusv1alpha1.ActiveCheck) {
	spec := &check.Spec
	o.Ignore(spec.SlurmJobSpec != nil, "spec.slurmJobSpec")
	o.Ignore(spec.FailureReactions != nil, "spec.failureReactions")
	o.Ignore(spec.SuccessReactions != nil, "spec.successReactions")
	o.Ignore(spec.Reactions != nil, "spec.reactions") //nolint:staticcheck // deprecated, and told of
	// That it is there asks for sackd.
	o.Ignore(spec.K8sJobSpec != nil && given(spec.K8sJobSpec.MungeContainer), "spec.k8sJobSpec.mungeContainer")
}

// runsFirst reports whether the run after creation is still due. A check that has had any Job has had its first run.
func runsFirst(in Input) bool {
	wanted := in.Check.Spec.RunAfterCreation
	return (wanted == nil || *wanted) && in.Check.Status.K8sJobsStatus == nil && in.Check.Status.SlurmJobsStatus == nil && len(in.Jobs) == 0
}

// name is the name of the check's container, and the beginning of the name of its first Job.
func name(check *nebiusv1alpha1.ActiveCheck) string { return cmp.Or(check.Spec.Name, check.Name) }

// InitialRunName returns the name of the Job that runs after creation.
func InitialRunName(check *nebiusv1alpha1.ActiveCheck) string { return name(check) + "-initial-run" }

// identity returns the set of labels of everything that a check makes.
func identity(check *nebiusv1alpha1.ActiveCheck) label.Set {
	return label.Set{Name: "activecheck", Instance: check.Spec.SlurmClusterRefName, Component: "soperatorchecks"}
}
