// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package login renders a LoginSet: pods with sshd and sackd, from which users submit jobs, behind a Service.
package login

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// Input is a LoginSet and what is known about its surroundings.
type Input struct {
	LoginSet   *slinkyv1beta1.LoginSet
	Controller *slinkyv1beta1.Controller
	// SlurmKeyDigest, HostKeysDigest and SssdDigest are digests of what the pods mount from Secrets; another one rolls
	// out new pods.
	SlurmKeyDigest, HostKeysDigest, SssdDigest string
	// MungeKeyDigest is that of the munge key, where munged runs.
	MungeKeyDigest string
	// SshdConfig is the sshd_config that the spec names in a ConfigMap; empty for none.
	SshdConfig string
	// Pods are those that run of the LoginSet, and Hosts has the names that they have in DNS; nil while there is none.
	Pods  []corev1.Pod
	Hosts *discoveryv1.EndpointSlice
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	Images        image.Set
}

// portName is the name of the ssh port on containers and Services.
const portName = "login"

// Labels is the identity of a LoginSet's objects.
func Labels(l *slinkyv1beta1.LoginSet) label.Set {
	return label.Set{Name: slinkyv1beta1.NameLogin, Instance: l.Name, Component: "login"}
}

// Render returns the ConfigMaps, the Services and the workload of the login pods. The Secret with the host keys is random
// and therefore not rendered.
func Render(in Input) render.Output {
	var out render.Output
	out.IgnoreOptional(in.LoginSet.Spec)
	set := Labels(in.LoginSet)
	spec := &in.LoginSet.Spec

	sshConfig := sshConfigMap(in, set)
	out.Add(sshConfig)
	if len(spec.Users) > 0 {
		users, err := usersConfigMap(in.LoginSet, set)
		out.Fail("spec.users", err)
		out.Add(users)
	}

	service, err := pod.Service(in.LoginSet, in.LoginSet.ServiceName(), set, spec.Service, portName, in.LoginSet.ServicePort(), "spec.service")
	out.Fail("spec.service", err)
	out.Add(service)

	podSpec, err := podSpec(in)
	out.Fail("spec", err)
	annotations := map[string]string{
		slinkyv1beta1.AnnotationSlurmKeyHash:    in.SlurmKeyDigest,
		slinkyv1beta1.AnnotationSSHHostKeysHash: in.HostKeysDigest,
		slinkyv1beta1.AnnotationSshdConfHash:    label.TextDigest(sshConfig.Data),
	}
	pod.MungeAnnotations(annotations, spec.Munge, in.MungeKeyDigest)
	if spec.SssdConfRef != nil {
		annotations[slinkyv1beta1.AnnotationSssdConfHash] = in.SssdDigest
	}
	template, err := pod.Template(podSpec, spec.Template, set, annotations, "spec.template")
	out.Fail("spec.template", err)
	out.Fail("spec.jail", pod.AddJail(&template.Spec, slinkyv1beta1.NameLogin, spec.Jail))

	out.Add(workload(in.LoginSet, set, template)...)
	if !in.Controller.Spec.External {
		out.Add(hosts(in, set))
	}
	return out
}

// searches are where hosts are looked up by a bare name: workers, and login pods where they have names.
func searches(in Input) []string {
	out := []string{in.Controller.WorkerDomain(in.ClusterDomain)}
	if in.LoginSet.Spec.Workload == slinkyv1beta1.LoginWorkloadStatefulSet {
		out = append(out, in.LoginSet.PodDomain(in.ClusterDomain))
	}
	return out
}

func podSpec(in Input) (corev1.PodSpec, error) {
	login, loginErr := loginContainer(in)
	initconf, initErr := initContainer(in, login.Image)
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		DNSConfig:                    &corev1.PodDNSConfig{Searches: searches(in)},
		InitContainers:               []corev1.Container{initconf},
		Containers:                   []corev1.Container{login},
		Volumes:                      volumes(in),
	}
	mungeErr := pod.AddMunge(&spec, slinkyv1beta1.NameLogin, in.LoginSet.Spec.Munge, in.Images.Munge())
	return spec, errors.Join(initErr, loginErr, mungeErr)
}
