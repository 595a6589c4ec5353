// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmrestd renders a RestApi: slurmrestd behind a Service.
package slurmrestd

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// Input is a RestApi and what is known about its surroundings.
type Input struct {
	RestAPI    *slinkyv1beta1.RestApi
	Controller *slinkyv1beta1.Controller
	// LoginSets are those of the Controller.
	LoginSets []slinkyv1beta1.LoginSet
	// SlurmKeyDigest is the digest of the auth/slurm key; another key restarts slurmrestd.
	SlurmKeyDigest string
	// ConnectionDigest is that of the Controller's slurm.conf, see ConnectionDigest; another one restarts slurmrestd.
	ConnectionDigest string
	// SSSDDigest is that of the Controller's sssd.conf, where SSSD runs.
	SSSDDigest string
	// OperatorNamespace is the namespace of the operator's own pods; empty when it runs outside of the cluster.
	OperatorNamespace string
	Images            image.Set
}

// Labels is the identity of a RestApi's objects.
func Labels(r *slinkyv1beta1.RestApi) label.Set {
	return label.Set{Name: slinkyv1beta1.NameSlurmrestd, Instance: r.Name, Component: "restapi"}
}

// Render returns the Service and the Deployment of slurmrestd.
func Render(in Input) render.Output {
	var out render.Output
	set := Labels(in.RestAPI)

	service, err := pod.Service(in.RestAPI, in.RestAPI.ServiceName(), set, in.RestAPI.Spec.Service,
		slinkyv1beta1.NameSlurmrestd, in.RestAPI.ServicePort(), "spec.service")
	out.Fail("spec.service", err)

	container, err := container(in)
	out.Fail("spec.slurmrestd", err)
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              pod.RestrictedPod(pod.NobodyUID),
		Containers:                   []corev1.Container{container},
		Volumes: []corev1.Volume{pod.Projected(pod.EtcVolume, 0o600, append([]corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: in.Controller.ConfigName()},
				Items:                []corev1.KeyToPath{{Key: "slurm.conf", Path: "slurm.conf"}},
			}},
		}, pod.SlurmKey(*in.Controller.AuthSlurmRef())...)...), pod.Tmp()},
	}
	// slurmctld sends it uids, for which it has names then.
	out.Fail("spec.controllerRef", pod.AddUsers(&spec, in.Controller.Spec.Jail, in.LoginSets, in.Images.Slurmctld(), pod.NobodyUID))
	out.Fail("spec.controllerRef", pod.AddSSSD(&spec, in.Controller.Spec.SSSD, in.Images.Login(), "spec.sssd of Controller "+in.Controller.Name))
	annotations := map[string]string{
		slinkyv1beta1.AnnotationSlurmKeyHash:        in.SlurmKeyDigest,
		slinkyv1beta1.AnnotationSlurmConnectionHash: in.ConnectionDigest,
	}
	pod.SSSDAnnotations(annotations, in.Controller.Spec.SSSD, in.SSSDDigest)
	template, err := pod.Template(spec, in.RestAPI.Spec.Template, set, annotations, "spec.template")
	out.Fail("spec.template", err)

	out.Add(service, &appsv1.Deployment{
		ObjectMeta: pod.ObjectMeta(in.RestAPI, in.RestAPI.Key().Name, set, in.RestAPI.Spec.Template.Metadata),
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(in.RestAPI.Replicas()),
			RevisionHistoryLimit: new(int32(0)),
			Selector:             &metav1.LabelSelector{MatchLabels: set.Selector()},
			Template:             template,
		},
	})
	// Without a namespace to admit, a policy would shut the operator itself out.
	if in.RestAPI.Guarded() && in.OperatorNamespace != "" {
		out.Add(networkPolicy(in, set))
	}
	return out
}

func container(in Input) (corev1.Container, error) {
	var args []string
	if in.Controller.Spec.AccountingRef == nil {
		// Without slurmdbd the accounting plugin of slurmrestd stops it at start.
		args = []string{"-s", "openapi/slurmctld"}
	}
	onPort := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(slinkyv1beta1.NameSlurmrestd)}}
	c, err := overlay.Container(corev1.Container{
		Name:  slinkyv1beta1.NameSlurmrestd,
		Image: in.Images.Slurmrestd(),
		Args:  args,
		Env: []corev1.EnvVar{
			{Name: "SLURM_JWT", Value: "daemon"},
			{Name: "SLURMRESTD_SECURITY", Value: "disable_unshare_files,disable_unshare_sysv"},
			{Name: "SLURMRESTD_JSON", Value: "compact"},
			// Idle connections take up slots; by default slurmrestd has ten and lets all others wait.
			{Name: "SLURMRESTD_MAX_CONNECTIONS", Value: "256"},
			// Our image has mimalloc. In other images each thread's arena would keep the memory of its largest answer.
			{Name: "MALLOC_ARENA_MAX", Value: "2"},
		},
		Ports:           []corev1.ContainerPort{{Name: slinkyv1beta1.NameSlurmrestd, ContainerPort: slinkyv1beta1.SlurmrestdPort, Protocol: corev1.ProtocolTCP}},
		SecurityContext: pod.Restricted(pod.NobodyUID),
		StartupProbe:    &corev1.Probe{ProbeHandler: onPort, TimeoutSeconds: pod.BusySeconds, FailureThreshold: 60, PeriodSeconds: 1},
		LivenessProbe:   &corev1.Probe{ProbeHandler: onPort, TimeoutSeconds: pod.BusySeconds, FailureThreshold: 6, PeriodSeconds: 10},
		ReadinessProbe:  &corev1.Probe{ProbeHandler: onPort, TimeoutSeconds: pod.BusySeconds},
		VolumeMounts:    []corev1.VolumeMount{{Name: pod.EtcVolume, MountPath: pod.EtcSlurm, ReadOnly: true}, pod.TmpMount()},
	}, in.RestAPI.Spec.Slurmrestd, "spec.slurmrestd")
	// The address comes last, after the user's arguments, as the predecessor's tests expect.
	c.Args = append(c.Args, "0.0.0.0:"+strconv.Itoa(int(slinkyv1beta1.SlurmrestdPort)))
	return c, err
}
