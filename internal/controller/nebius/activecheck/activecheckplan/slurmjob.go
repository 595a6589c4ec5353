// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// user is the Slurm user that the jobs of checks run as: docs/contributors/predecessors/soperator-checks.md#slurm-jobs-of-checks.
const user = "soperatorchecks"

// SbatchKey is the key of the ConfigMap of spec.slurmJobSpec.sbatchScriptRefName that has the batch script.
const SbatchKey = "sbatch.sh"

// annotationCheckType on a CronJob is the type of the check that it was made for. It distinguishes a CronJob whose managedBy the API server
// has dropped from one that was made while the check had another type.
const annotationCheckType = "coxswain.dev/check-type"

const (
	slurmPath = "spec.slurmJobSpec"
	// EnvironmentPath is the field with the variables of Slurm jobs.
	EnvironmentPath = slurmPath + ".jobContainer.env"
	// ScriptPath is the field with the script of a check, if spec.slurmJobSpec.sbatchScriptRefName does not name it.
	ScriptPath = slurmPath + ".sbatchScript"
	// ScriptRefPath is the field that names the ConfigMap with the script.
	ScriptRefPath = slurmPath + ".sbatchScriptRefName"
	// variableReservation names the reservation that a run is to be in, and variableCheck the check:
	// docs/contributors/predecessors/soperator-checks.md#slurm-jobs-of-checks.
	variableReservation = "RESERVATION_NAME"
	variableCheck       = "ACTIVE_CHECK_NAME"
	// noImage is the image of pods that are never made. No registry has it.
	noImage = "coxswain.dev/no-pod"
)

// IsSlurmJob reports whether a check is one of Slurm jobs.
func IsSlurmJob(check *nebiusv1alpha1.ActiveCheck) bool {
	return check.Spec.CheckType == nebiusv1alpha1.CheckTypeSlurmJob
}

// slurmSpec returns the part of the spec about Slurm jobs.
func slurmSpec(check *nebiusv1alpha1.ActiveCheck) nebiusv1alpha1.SlurmJobSpec {
	if check.Spec.SlurmJobSpec == nil {
		return nebiusv1alpha1.SlurmJobSpec{}
	}
	return *check.Spec.SlurmJobSpec
}

// script returns the batch script of a check; empty while it is not known.
func script(in Input) string {
	if spec := slurmSpec(in.Check); spec.SbatchScriptRefName == "" {
		return spec.SbatchScript
	}
	return in.Script
}

// slurmTemplate returns the pod template of the Jobs of a check of type slurmJob, from which no pod is made. Its variables are those of the
// Slurm jobs. A user who makes a Job of the CronJob can add some, such as RESERVATION_NAME.
func (o *Output) slurmTemplate(in Input) corev1.PodTemplateSpec {
	check := in.Check
	o.ignoreKubernetes(check)
	spec := slurmSpec(check)
	if spec.SbatchScriptRefName == "" && strings.TrimSpace(spec.SbatchScript) == "" {
		o.Problems = append(o.Problems, problem.Errorf(ScriptPath, nebiusv1alpha1.ReasonInvalidSpec,
			"must be given, or sbatchScriptRefName"))
	}
	o.Ignore(spec.SbatchScriptRefName != "" && spec.SbatchScript != "", ScriptPath)
	env := o.environment(check)
	if strings.TrimSpace(script(in)) != "" {
		variables, _ := in.variables(env, metav1.ObjectMeta{Namespace: check.Namespace, Name: check.Name})
		_, problems := scripted(in, variables)
		o.Problems = append(o.Problems, problems...)
	}
	for _, state := range []string{"FAILED", "COMPLETED"} {
		_, problems := ReactTo(check, CheckedJob{State: state})
		o.Problems = append(o.Problems, problems...)
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: identity(check).Labels(), Annotations: annotations(check)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			Containers: []corev1.Container{{Name: name(check), Image: noImage, Env: env}},
		},
	}
}

// ignoreKubernetes lists the fields for pods in a check of Slurm jobs, for which no pod is made, and those that no part of the operator
// carries out.
func (o *Output) ignoreKubernetes(check *nebiusv1alpha1.ActiveCheck) {
	spec := &check.Spec
	o.Ignore(spec.K8sJobSpec != nil, "spec.k8sJobSpec")
	o.Ignore(spec.PodTemplateNameRef != "", templatePath)
	o.Ignore(spec.Affinity != nil, "spec.affinity")
	o.Ignore(len(spec.NodeSelector) > 0, "spec.nodeSelector")
	o.Ignore(len(spec.Tolerations) > 0, "spec.tolerations")
	o.Ignore(spec.HostUsers != nil, "spec.hostUsers")
	slurm := slurmSpec(check)
	o.Ignore(given(slurm.MungeContainer), slurmPath+".mungeContainer")
	c, path := slurm.JobContainer, slurmPath+".jobContainer"
	o.Ignore(c.Image != "", path+".image")
	o.Ignore(pullsOtherwise(c), path+".imagePullPolicy")
	o.Ignore(len(c.ImagePullSecrets) > 0, path+".imagePullSecrets")
	o.Ignore(len(c.Command) > 0, path+".command")
	o.Ignore(len(c.Args) > 0, path+".args")
	o.Ignore(c.WorkingDir != "", path+".workingDir")
	o.Ignore(len(c.VolumeMounts) > 0, path+".volumeMounts")
	o.Ignore(len(c.Volumes) > 0, path+".volumes")
	o.Ignore(isConfined(c), path+".appArmorProfile")
	o.Ignore(spec.FailureReactions != nil && spec.Reactions != nil, "spec.reactions") //nolint:staticcheck // the other one wins as a whole
}

// given reports whether anything of a container is given, beside the defaults of the API.
func given(c nebiusv1alpha1.CheckContainer) bool {
	return c.Image != "" || pullsOtherwise(c) || c.WorkingDir != "" || isConfined(c) ||
		len(c.ImagePullSecrets)+len(c.Command)+len(c.Args)+len(c.Env)+len(c.VolumeMounts)+len(c.Volumes) > 0
}

// pullsOtherwise reports whether a container has another policy than the default of the API.
func pullsOtherwise(c nebiusv1alpha1.CheckContainer) bool {
	return orPullPolicy(c.ImagePullPolicy) != corev1.PullIfNotPresent
}

// isConfined reports whether a container has another profile than the default of the API.
func isConfined(c nebiusv1alpha1.CheckContainer) bool {
	return c.AppArmorProfile != "" && c.AppArmorProfile != unconfined
}

// managed makes a CronJob one whose Jobs are the operator's. It is suspended until the API server has shown that it keeps managedBy:
// one that does not know the field would let its own Job controller make pods.
func managed(cron *batchv1.CronJob, in Input) {
	cron.Annotations[annotationCheckType] = string(nebiusv1alpha1.CheckTypeSlurmJob)
	if in.CronJob == nil || !managedBy(in.CronJob) {
		cron.Spec.Suspend = new(true)
	}
}

// managedBy reports whether the Jobs of a CronJob are the operator's.
func managedBy(cron *batchv1.CronJob) bool {
	by := cron.Spec.JobTemplate.Spec.ManagedBy
	return by != nil && *by == ManagedBy
}

// NotServed returns the problem of a check of Slurm jobs in a Kubernetes that does not know spec.managedBy of Jobs; nil for none.
func NotServed(in Input) problem.List {
	if !IsSlurmJob(in.Check) || in.CronJob == nil || managedBy(in.CronJob) || in.CronJob.Annotations[annotationCheckType] == "" {
		return nil
	}
	return problem.List{problem.Errorf("spec.checkType", nebiusv1alpha1.ReasonNotServed,
		"slurmJob needs Kubernetes 1.32 or later: this API server dropped spec.managedBy of the Jobs, so that nothing is run")}
}

// partitions returns where the jobs of a cluster's checks go. An empty one leaves it to the script and to Slurm, where the cluster has no
// partition of that name.
func partitions(cluster *nebiusv1.SlurmCluster) (hidden, background string) {
	hidden, background = hiddenPartition, backgroundPartition
	if cluster == nil {
		return hidden, background
	}
	has := func(name string) bool {
		p := &cluster.Spec.PartitionConfiguration
		switch p.ConfigType {
		case nebiusv1.PartitionConfigCustom:
			return slices.ContainsFunc(p.RawConfig, func(line string) bool {
				first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				key, value, _ := strings.Cut(first, "=")
				return strings.EqualFold(key, "PartitionName") && value == name
			})
		case nebiusv1.PartitionConfigStructured:
			return slices.ContainsFunc(p.Partitions, func(one nebiusv1.Partition) bool { return one.Name == name })
		default:
			return name == hiddenPartition || cluster.Spec.SlurmNodes.Worker != nil
		}
	}
	if !has(hidden) {
		hidden = ""
	}
	if !has(background) {
		background = hidden
	}
	return hidden, background
}

// RunOf returns the run that a Kubernetes Job of a check stands for. The variables are those of the Job's own pod template.
func RunOf(in Input, job *batchv1.Job) (Run, problem.List) {
	spec := slurmSpec(in.Check)
	hidden, background := partitions(in.Cluster)
	run := Run{
		Check: name(in.Check), Marker: marker(job), Hidden: hidden, Background: background,
		EachWorker: spec.EachWorkerJobs, Array: spec.EachWorkerJobArray, Max: int(min(spec.MaxNumberOfJobs, 1<<20)), //nolint:staticcheck // deprecated, and in effect
	}
	var env []corev1.EnvVar
	for i := range job.Spec.Template.Spec.Containers {
		if c := &job.Spec.Template.Spec.Containers[i]; c.Name == run.Check {
			env = c.Env
		}
	}
	given, problems := in.variables(env, job.ObjectMeta)
	variables := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": jobDirectory, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash",
	}
	maps.Copy(variables, given)
	run.Reservation = variables[variableReservation]
	for key, value := range variables {
		run.Environment = append(run.Environment, key+"="+value)
	}
	slices.Sort(run.Environment)
	submission, mistakes := scripted(in, given)
	run.Given = submission
	return run, append(problems, mistakes...)
}

// deadline returns how long the submission of a run may take.
func deadline(job *batchv1.Job) time.Duration {
	seconds := orDefault(job.Spec.ActiveDeadlineSeconds, defaultDeadline)
	return time.Duration(min(seconds, int64(maxDeadline/time.Second))) * time.Second
}

// maxDeadline keeps sums with a time from overflowing.
const maxDeadline = 10 * 365 * 24 * time.Hour

// A SubmittedJob is a job of a run that Slurm has.
type SubmittedJob struct {
	ID string
	// Nodes are the nodes that it must have: none if any will do.
	Nodes []string
}

// Missing returns the jobs of a run that are not submitted yet. There are never two of a run for one node, and never more than its limit.
func Missing(run Run, nodes []rest.Node, there []SubmittedJob, job *batchv1.Job) []rest.Submission {
	if run.Reservation != "" || !run.EachWorker && !run.Array {
		if len(there) > 0 {
			return nil
		}
		return Submissions(run, nodes, chanceOf(job))
	}
	taken := map[string]bool{}
	for _, one := range there {
		for _, name := range one.Nodes {
			taken[name] = true
		}
	}
	if run.Max > 0 {
		if run.Max -= len(there); run.Max <= 0 {
			return nil
		}
	}
	free := slices.DeleteFunc(slices.Clone(nodes), func(n rest.Node) bool { return taken[n.Name] })
	return Submissions(run, free, chanceOf(job))
}

// chanceOf returns the source by which a run chooses among healthy nodes.
func chanceOf(job *batchv1.Job) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(job.UID))            // it never fails
	return rand.New(rand.NewPCG(hash.Sum64(), 0)) //nolint:gosec // nobody gains by guessing it
}

// Refusal returns the message of a run for a job that Slurm refused.
func Refusal(s rest.Submission, err error) string {
	text := err.Error()
	if len(s.Nodes) > 0 {
		text = "for node " + strings.Join(s.Nodes, ",") + ": " + text
	}
	return cut(text)
}
