// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// podsEndEvery is how often to check whether the last pod that mounts the jail has ended: not every end of a pod changes the status of its
// owner.
const podsEndEvery = 10 * time.Second

// maxLog bounds how much of the log of a failed pod is shown.
const maxLog = 600

// populate reads what is known about the Job that fills the jail. Pods are asked for only when they matter: the cache has neither those of
// the Job nor those of login.
func (r *reconciler) populate(ctx context.Context, cluster *nebiusv1.SlurmCluster, nodeSets []nebiusv1alpha1.NodeSet) (compose.ObservedPopulate, error) {
	var out compose.ObservedPopulate
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.PopulateJailName()}
	switch err := r.Client.Get(ctx, key, job); {
	case err == nil && metav1.IsControlledBy(job, cluster):
		out.Job = job
	case err != nil && !apierrors.IsNotFound(err):
		return out, fmt.Errorf("reading Job %s: %w", key, err)
	}
	var err error
	if out.Claim, err = r.claimUID(ctx, cluster.Namespace, compose.JailClaim(cluster, nodeSets, out.Job)); err != nil {
		return out, err
	}
	if out.Job != nil && job.Status.Failed > 0 && job.Status.Succeeded == 0 {
		if out.Log, err = r.lastWords(ctx, job); err != nil {
			return out, err
		}
	}
	if compose.Overwrites(cluster, out.Job) {
		out.Users, out.Writers, err = r.jailUsers(ctx, cluster)
	}
	return out, err
}

// claimUID asks the server for the UID of a user's claim; empty if there is none.
func (r *reconciler) claimUID(ctx context.Context, namespace, name string) (types.UID, error) {
	if name == "" {
		return "", nil
	}
	var claim metav1.PartialObjectMetadata
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &claim)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", namespace, name, err)
	}
	return claim.UID, nil
}

// lastWords returns the last lines of the log of the pod of a Job that failed last.
func (r *reconciler) lastWords(ctx context.Context, job *batchv1.Job) (string, error) {
	var pods corev1.PodList
	err := r.Live.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return "", fmt.Errorf("listing the pods of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	failed := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodFailed })
	if len(failed) == 0 {
		return "", nil
	}
	last := slices.MaxFunc(failed, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	text := strings.TrimSpace(cmp.Or(last.Status.Message, last.Status.Reason))
	for _, status := range last.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil {
			text = cmp.Or(strings.TrimSpace(ended.Message), text, fmt.Sprintf("exit code %d, %s", ended.ExitCode, ended.Reason))
		}
	}
	if len(text) > maxLog {
		text = "… " + strings.ToValidUTF8(text[len(text)-maxLog:], "")
	}
	return text, nil
}

// jailUsers counts the login and worker pods of a cluster that mount the jail and have not ended, and those of sconfigcontroller.
func (r *reconciler) jailUsers(ctx context.Context, cluster *nebiusv1.SlurmCluster) (users, writers int, err error) {
	for _, of := range []struct {
		labels client.MatchingLabels
		count  *int
	}{
		{client.MatchingLabels{label.Name: slinkyv1beta1.NameSlurmd, slinkyv1beta1.LabelCluster: cluster.ControllerName()}, &users},
		{client.MatchingLabels{label.Name: slinkyv1beta1.NameLogin, label.Instance: cluster.LoginSetName()}, &users},
		{compose.SConfigControllerSelector(cluster), &writers},
	} {
		var pods corev1.PodList
		if err := r.Live.List(ctx, &pods, client.InNamespace(cluster.Namespace), of.labels); err != nil {
			return 0, 0, fmt.Errorf("listing the pods of %s that use the jail: %w", client.ObjectKeyFromObject(cluster), err)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			if !ended && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == pod.JailVolume }) {
				*of.count++
			}
		}
	}
	return users, writers, nil
}

// jail writes the conditions about the jail.
func (s *status) jail(now time.Time) {
	jail := &s.composed.Jail
	if jail.Filled != nil {
		s.cluster.Status.PopulatedJail = jail.Filled
	}
	if jail.Overwritten == nil {
		s.report.Drop = append(s.report.Drop, nebiusv1.ConditionJailOverwritten)
	} else {
		s.report.Conditions = append(s.report.Conditions, *jail.Overwritten)
	}
	if jail.Condition == nil {
		s.report.Drop = append(s.report.Drop, nebiusv1.ConditionJailPopulated)
		return
	}
	s.report.Conditions = append(s.report.Conditions, *jail.Condition)
	if jail.ForPods && (jail.Paused || s.cluster.Spec.Maintenance.Downscaled()) {
		s.report.Again = now.Add(podsEndEvery)
	}
}

// jailPart returns the jail as a part of the cluster. A later run that is under way, or waits, does not make a filled jail less ready.
func (s *status) jailPart() []kube.Part {
	condition := s.composed.Jail.Condition
	switch {
	case condition == nil, s.cluster.Spec.Maintenance == nebiusv1.MaintenanceDownscaleAndDeletePopulateJail, s.cluster.Spec.Maintenance == nebiusv1.MaintenanceDownscale:
		return nil
	case condition.Reason == nebiusv1.ReasonPopulateFailed:
		return []kube.Part{{Name: "jail", Stalled: true, Reason: "PopulateJailFailed", Message: condition.Message}}
	case condition.Status == metav1.ConditionTrue && s.cluster.Spec.Maintenance != nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail,
		condition.Reason == nebiusv1.ReasonPopulated:
		return []kube.Part{{Name: "jail", Ready: true, Reason: condition.Reason, Message: condition.Message}}
	}
	return []kube.Part{{Name: "jail", Reason: condition.Reason, Message: condition.Message}}
}

// awaitsJail replaces the message of a component that does not exist yet by what it waits for.
func (s *status) awaitsJail(part kube.Part) kube.Part {
	if s.composed.Jail.Awaited && !part.Ready && !part.Stalled {
		part.Message = "waits for the jail, see condition " + nebiusv1.ConditionJailPopulated
	}
	return part
}
