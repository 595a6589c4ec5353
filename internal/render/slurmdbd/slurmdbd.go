// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmdbd renders an Accounting: slurmdbd, and the embedded database when the spec asks for one.
package slurmdbd

import (
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// Input is an Accounting and what is known about its surroundings.
type Input struct {
	Accounting *slinkyv1beta1.Accounting
	// SlurmKeyDigest and JwtKeyDigest are digests of the keys; another one restarts slurmdbd.
	SlurmKeyDigest, JwtKeyDigest string
	// MungeKeyDigest is that of the munge key, where munged runs.
	MungeKeyDigest string
	// Password is the password of the database. It is written into the Secret of slurmdbd.conf and nowhere else.
	Password string
	// SealingKey is a secret with which digests of the password are made, so that they cannot be used to guess it.
	SealingKey []byte
	// TLSDigest is the digest of the certificates for a TLS connection to the database; another one restarts slurmdbd.
	TLSDigest string
	// Running is true if slurmdbd has a pod or may get one, until it is known to be stopped. An embedded database that is suspended runs
	// until then.
	Running bool
	Images  image.Set
}

// replicas is the number of slurmdbd's pods.
func replicas(a *slinkyv1beta1.Accounting) int32 {
	if a.Suspended() {
		return 0
	}
	return 1
}

// databaseReplicas is the number of pods of the embedded database.
func databaseReplicas(in Input) int32 {
	if in.Running {
		return 1
	}
	return replicas(in.Accounting)
}

const runVolume = "run"

// Labels is the identity of slurmdbd's objects.
func Labels(a *slinkyv1beta1.Accounting) label.Set {
	return label.Set{Name: slinkyv1beta1.NameSlurmdbd, Instance: a.Name, Component: "accounting"}
}

// Render returns the objects of slurmdbd and of its embedded database. An external slurmdbd needs none.
func Render(in Input) render.Output {
	var out render.Output
	a := in.Accounting
	out.IgnoreOptional(a.Spec)
	if a.Spec.External {
		const elsewhere = " (slurmdbd runs elsewhere)"
		out.Ignore(a.Spec.StorageConfig != nil, "spec.storageConfig"+elsewhere)
		out.Ignore(a.Spec.EmbeddedDatabase != nil, "spec.embeddedDatabase"+elsewhere)
		out.Ignore(a.Spec.ExtraConf != "", "spec.extraConf"+elsewhere)
		out.Ignore(a.Spec.JwksKeyRef != nil, "spec.jwksKeyRef"+elsewhere)
		out.Ignore(a.Spec.Suspend, "spec.suspend"+elsewhere)
		out.Ignore(a.Spec.Munge != nil, "spec.munge"+elsewhere)
		return out
	}
	set := Labels(a)

	// A file that ends with a line break is the usual way to make such a Secret by hand.
	in.Password = strings.TrimRight(in.Password, "\r\n")
	doc, err := slurmdbdConf(in)
	out.Fail("spec.extraConf", err)
	files := &corev1.Secret{
		ObjectMeta: pod.ObjectMeta(a, a.ConfigName(), set),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{slurmdbdConfFile: file(doc, &out), askConfFile: file(askConf(), &out)},
	}
	service, err := pod.Service(a, a.ServiceName(), set, a.Spec.Service, slinkyv1beta1.NameSlurmdbd, a.ServicePort(), "spec.service")
	out.Fail("spec.service", err)
	// Without its database the pod is not ready, but slurmdbd answers and reports that. A connection to a Service without endpoints hangs.
	service.Spec.PublishNotReadyAddresses = true
	out.Add(files, service)
	if a.Spec.EmbeddedDatabase != nil {
		database(in, &out)
	}
	statefulSet, err := statefulSet(in, set, label.Seal(in.SealingKey, files.Data))
	out.Fail("spec", err)
	out.Add(statefulSet)
	return out
}

// file writes a document, which is nil when there is a problem already.
func file(doc *conf.Document, out *render.Output) []byte {
	if doc == nil {
		return nil
	}
	data, err := doc.Bytes()
	if err != nil {
		out.Fail("spec.extraConf", problem.Errorf("spec.extraConf", config.ReasonInvalid, "%v", err))
	}
	return data
}

func statefulSet(in Input, set label.Set, confDigest string) (*appsv1.StatefulSet, error) {
	a := in.Accounting
	container, containerErr := overlay.Container(corev1.Container{
		Name:            slinkyv1beta1.NameSlurmdbd,
		Image:           in.Images.Slurmdbd(),
		Ports:           []corev1.ContainerPort{{Name: slinkyv1beta1.NameSlurmdbd, ContainerPort: slinkyv1beta1.SlurmdbdPort, Protocol: corev1.ProtocolTCP}},
		SecurityContext: pod.Restricted(pod.SlurmUID),
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 2, TimeoutSeconds: pod.BusySeconds, ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(slinkyv1beta1.NameSlurmdbd)},
		}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: pod.EtcVolume, MountPath: pod.EtcSlurm, ReadOnly: true},
			{Name: runVolume, MountPath: "/run"},
			pod.TmpMount(), // where slurmdbd archives to by default
		},
	}, a.Spec.Slurmdbd, "spec.slurmdbd")
	annotations := map[string]string{
		slinkyv1beta1.AnnotationSlurmKeyHash:     in.SlurmKeyDigest,
		slinkyv1beta1.AnnotationJwtKeyHash:       in.JwtKeyDigest,
		slinkyv1beta1.AnnotationSlurmdbdConfHash: confDigest,
	}
	if in.TLSDigest != "" {
		annotations[tlsHash] = in.TLSDigest
	}
	pod.MungeAnnotations(annotations, a.Spec.Munge, in.MungeKeyDigest)
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              pod.RestrictedPod(pod.SlurmUID),
		InitContainers:               []corev1.Container{watchDatabase(a, container.Image)},
		Containers:                   []corev1.Container{container},
		// slurmdbd does not start when others may read its configuration.
		Volumes: []corev1.Volume{pod.Projected(pod.EtcVolume, 0o600, etc(a)...), pod.EmptyDir(runVolume, true), pod.Tmp()},
	}
	mungeErr := pod.AddMunge(&spec, slinkyv1beta1.NameSlurmdbd, a.Spec.Munge, in.Images.Munge())
	template, templateErr := pod.Template(spec, a.Spec.Template, set, annotations, "spec.template")
	return &appsv1.StatefulSet{
		ObjectMeta: pod.ObjectMeta(a, a.Key().Name, set, a.Spec.Template.Metadata),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             new(replicas(a)),
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			RevisionHistoryLimit: new(int32(0)),
			ServiceName:          a.ServiceName(),
			Selector:             &metav1.LabelSelector{MatchLabels: set.Selector()},
			Template:             template,
		},
	}, errors.Join(containerErr, mungeErr, templateErr)
}

// etc is the content of /etc/slurm for slurmdbd.
func etc(a *slinkyv1beta1.Accounting) []corev1.VolumeProjection {
	item := func(key string) corev1.VolumeProjection {
		return pod.SecretItem(corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: a.ConfigName()}, Key: key}, key)
	}
	sources := append([]corev1.VolumeProjection{item(slurmdbdConfFile), item(askConfFile)}, pod.SlurmKey(*a.AuthSlurmRef())...)
	sources = append(sources, pod.SecretItem(*a.AuthJwtRef(), pod.JwtKeyFile))
	if ref := a.Spec.JwksKeyRef; ref != nil {
		sources = append(sources, pod.ConfigMapItem(*ref, pod.JwksFile))
	}
	return append(sources, certificates(a)...)
}

// Image is the image that slurmdbd is to have; empty when the spec has mistakes.
func Image(a *slinkyv1beta1.Accounting, images image.Set) string {
	s, err := statefulSet(Input{Accounting: a, Images: images}, Labels(a), "")
	if err != nil || len(s.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	return s.Spec.Template.Spec.Containers[0].Image
}

// PasswordPath is the field with the reference to the password of the database.
func PasswordPath(a *slinkyv1beta1.Accounting) string {
	if a.Spec.EmbeddedDatabase != nil {
		return "spec.embeddedDatabase.passwordKeyRef"
	}
	return "spec.storageConfig.passwordKeyRef"
}
