// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// facts are what is known about an ActiveCheck.
type facts struct {
	activecheckplan.Input
	// problems are what the spec refers to and is missing.
	problems problem.List
	// cache is the cluster's Slurm cache; nil if there is none, and for a check of type k8sJob.
	cache *slurmcache.Cache
	// runs are the runs of Slurm jobs that are not over.
	runs []activecheckplan.RunInput
}

func (r *reconciler) gather(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (facts, error) {
	f := facts{Input: activecheckplan.Input{Check: check}}
	var err error
	if f.Checks, err = r.checks(ctx, check.Namespace); err != nil {
		return f, err
	}
	if f.Cluster, err = r.cluster(ctx, check); err != nil {
		return f, err
	}
	var jobs []batchv1.Job
	if f.CronJob, jobs, err = r.jobs(ctx, check); err != nil {
		return f, err
	}
	for i := range jobs {
		if activecheckplan.LooksAtMachine(&jobs[i]) {
			f.MachineJobs = append(f.MachineJobs, jobs[i])
		} else {
			f.Jobs = append(f.Jobs, jobs[i])
		}
	}
	if activecheckplan.Requires(check) {
		if f.Workers, err = r.waiting(ctx, check); err != nil {
			return f, err
		}
	}
	if activecheckplan.IsSlurmJob(check) {
		f.Script, err = r.sbatch(ctx, check)
		sources, sourcesErr := r.sources(ctx, check)
		f.Sources = sources
		if f.problems, err = problem.FromError(errors.Join(err, sourcesErr)); err != nil {
			return f, err
		}
		if f.cache, f.runs, err = r.runs(ctx, check, f.Jobs); err != nil {
			return f, err
		}
		if slices.ContainsFunc(f.runs, submits) {
			f.GPUs, err = r.wantsGPUs(ctx, f.Cluster)
		}
		return f, err
	}
	r.forget(client.ObjectKeyFromObject(check)) // it may have been one of Slurm jobs
	f.Stand = r.stand(check)
	if f.Access, err = r.access(ctx, check, f.Cluster); err != nil {
		return f, err
	}
	template, err := r.template(ctx, check)
	f.Template = template
	f.problems, err = problem.FromError(errors.Join(err, r.script(ctx, check)))
	return f, err
}

// checks returns the checks of a namespace by name.
func (r *reconciler) checks(ctx context.Context, namespace string) (map[string]*nebiusv1alpha1.ActiveCheck, error) {
	var list nebiusv1alpha1.ActiveCheckList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ActiveChecks of namespace %s: %w", namespace, err)
	}
	out := map[string]*nebiusv1alpha1.ActiveCheck{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out[list.Items[i].Name] = &list.Items[i]
		}
	}
	return out, nil
}

// cluster reads the SlurmCluster of a check; nil if there is none.
func (r *reconciler) cluster(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (*nebiusv1.SlurmCluster, error) {
	key := client.ObjectKey{Namespace: check.Namespace, Name: check.Spec.SlurmClusterRefName}
	cluster := &nebiusv1.SlurmCluster{}
	switch err := r.Client.Get(ctx, key, cluster); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absent is an answer, not an error
	case err != nil:
		return nil, fmt.Errorf("reading SlurmCluster %s: %w", key, err)
	case cluster.DeletionTimestamp != nil:
		return nil, nil //nolint:nilnil // so is one that goes
	}
	return cluster, nil
}

// jobs reads the CronJob of a check, and the Jobs that belong to either.
func (r *reconciler) jobs(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (*batchv1.CronJob, []batchv1.Job, error) {
	key := client.ObjectKeyFromObject(check)
	cron := &batchv1.CronJob{}
	if err := r.Client.Get(ctx, key, cron); client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("reading CronJob %s: %w", key, err)
	}
	owners := []client.Object{check}
	if metav1.IsControlledBy(cron, check) {
		owners = append(owners, cron)
	} else {
		cron = nil // somebody else's, which is noticed when ours is to be made
	}
	var jobs []batchv1.Job
	for _, owner := range owners {
		var list batchv1.JobList
		err := r.Client.List(ctx, &list, client.InNamespace(check.Namespace), client.MatchingFields{kube.OwnerIndex: string(owner.GetUID())},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, nil, fmt.Errorf("listing the Jobs of ActiveCheck %s: %w", key, err)
		}
		jobs = append(jobs, list.Items...)
	}
	return cron, jobs, nil
}

// stand returns what a check gets that names an image of Soperator; nil if it names another.
func (r *reconciler) stand(check *nebiusv1alpha1.ActiveCheck) *activecheckplan.Stand {
	if check.Spec.K8sJobSpec == nil {
		return nil
	}
	image := compose.CheckImage(r.Images, check.Spec.K8sJobSpec.JobContainer.Image)
	if image == "" {
		return nil
	}
	return &activecheckplan.Stand{Image: image, Account: compose.CheckAccount(check.Spec.SlurmClusterRefName)}
}

// access returns how Slurm's commands in a check reach its cluster; nil if it asks for none, or its Controller is not there yet.
func (r *reconciler) access(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, cluster *nebiusv1.SlurmCluster) (*activecheckplan.Access, error) {
	if cluster == nil || !activecheckplan.AsksSlurm(check) {
		return nil, nil //nolint:nilnil // none is asked for
	}
	controller := &slinkyv1beta1.Controller{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.ControllerName()}
	switch err := r.Client.Get(ctx, key, controller); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // the cluster is not available then, and nothing runs
	case err != nil:
		return nil, fmt.Errorf("reading Controller %s: %w", key, err)
	}
	return &activecheckplan.Access{Image: r.Images.CheckJob(), Key: *controller.AuthSlurmRef(), Endpoint: controller.Endpoint()}, nil
}

// template reads the PodTemplate that a check names; nil if it names none. A missing one is a problem that heals when it appears.
func (r *reconciler) template(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (*corev1.PodTemplate, error) {
	name := check.Spec.PodTemplateNameRef
	if name == "" {
		return nil, nil //nolint:nilnil // none is named
	}
	template := &corev1.PodTemplate{}
	switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: check.Namespace, Name: name}, template); {
	case apierrors.IsNotFound(err):
		return nil, problem.Waitingf("spec.podTemplateNameRef", slinkyv1beta1.ReasonReferenceNotFound,
			"PodTemplate %s does not exist; create it or remove the reference", name)
	case err != nil:
		return nil, fmt.Errorf("reading PodTemplate %s/%s: %w", check.Namespace, name, err)
	}
	return template, nil
}

// script returns a problem if the script of a check is missing: without it its pods would not start.
func (r *reconciler) script(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) error {
	job := check.Spec.K8sJobSpec
	if job == nil || job.ScriptRefName == "" {
		return nil
	}
	ref := corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: job.ScriptRefName}, Key: activecheckplan.ScriptKey}
	_, err := r.ConfigMapValue(ctx, check.Namespace, ref, "spec.k8sJobSpec.scriptRefName")
	return err
}

// sources reads what variables of Slurm jobs refer to. What is missing and required is a problem that heals when it appears.
func (r *reconciler) sources(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (map[activecheckplan.Source]string, error) {
	out := map[activecheckplan.Source]string{}
	var errs []error
	for _, v := range activecheckplan.Variables(check) {
		source, required, refers := activecheckplan.SourceOf(v)
		if !refers {
			continue
		}
		value, known, err := r.source(ctx, check.Namespace, source)
		switch {
		case err != nil:
			errs = append(errs, err)
		case known:
			out[source] = value
		case required:
			errs = append(errs, problem.Waitingf(activecheckplan.EnvironmentPath, slinkyv1beta1.ReasonKeyMissing,
				"variable %s: %s %s has no key %s, or does not exist", v.Name, source.Kind, source.Name, source.Key))
		}
	}
	return out, errors.Join(errs...)
}

// source reads a key of a Secret or ConfigMap; known is false if it is not there.
func (r *reconciler) source(ctx context.Context, namespace string, source activecheckplan.Source) (value string, known bool, err error) {
	key := client.ObjectKey{Namespace: namespace, Name: source.Name}
	if source.Kind == "Secret" {
		var secret *corev1.Secret
		if secret, err = r.ReadSecret(ctx, key); err == nil {
			var data []byte
			data, known = secret.Data[source.Key]
			value = string(data)
		}
	} else {
		configMap := &corev1.ConfigMap{}
		if err = r.Live.Get(ctx, key, configMap); err == nil {
			value, known = configMap.Data[source.Key]
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return "", false, fmt.Errorf("reading %s %s: %w", source.Kind, key, err)
	}
	return value, known, nil
}

// submits reports whether a run is about to be submitted.
func submits(run activecheckplan.RunInput) bool {
	return activecheckplan.NextStep(run.RunFacts) == activecheckplan.StepSubmit
}

// wantsGPUs reports whether workers of a cluster are meant to have GPUs.
func (r *reconciler) wantsGPUs(ctx context.Context, cluster *nebiusv1.SlurmCluster) (bool, error) {
	if cluster == nil {
		return false, nil
	}
	nodeSets, err := reference.NodeSetsOf(ctx, r.Client, cluster)
	if err != nil {
		return false, err
	}
	return compose.WantsGPUs(cluster, nodeSets), nil
}

// sbatch reads the batch script of a check of Slurm jobs, if its spec refers to one.
func (r *reconciler) sbatch(ctx context.Context, check *nebiusv1alpha1.ActiveCheck) (string, error) {
	job := check.Spec.SlurmJobSpec
	if job == nil || job.SbatchScriptRefName == "" {
		return "", nil
	}
	ref := corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: job.SbatchScriptRefName}, Key: activecheckplan.SbatchKey}
	return r.ConfigMapValue(ctx, check.Namespace, ref, activecheckplan.ScriptRefPath)
}
