// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"cmp"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// Names of volumes and where they are mounted.
const (
	runVolume   = "run"
	stateVolume = "statesave"
	authVolume  = "slurm-authsocket"
	authDir     = "/run/slurmctld"
)

// etcMode lets the Slurm group read files and run scripts; the kubelet adds reading for the pod's fsGroup.
const etcMode = 0o610

func statefulSet(in Input, set label.Set, configDigest string) (*appsv1.StatefulSet, error) {
	c := in.Controller
	spec, specErr := podSpec(in)
	annotations := map[string]string{
		slinkyv1beta1.AnnotationSlurmKeyHash: in.SlurmKeyDigest,
		slinkyv1beta1.AnnotationJwtKeyHash:   in.JwtKeyDigest,
	}
	pod.MungeAnnotations(annotations, c.Spec.Munge, in.MungeKeyDigest)
	pod.SSSDAnnotations(annotations, c.Spec.SSSD, in.SSSDDigest)
	if !c.Spec.InplaceReconfigure {
		annotations[slinkyv1beta1.AnnotationSlurmConfigHash] = configDigest
	}
	template, templateErr := pod.Template(spec, c.Spec.Template, set, annotations, "spec.template")
	out := &appsv1.StatefulSet{
		ObjectMeta: pod.ObjectMeta(c, c.Key().Name, set, c.Spec.Template.Metadata),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             new(running(c)),
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			RevisionHistoryLimit: new(int32(0)),
			ServiceName:          serviceName(c),
			Selector:             &metav1.LabelSelector{MatchLabels: set.Selector()},
			Template:             template,
		},
	}
	if claim := c.StateClaim(); claim != nil {
		out.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: stateVolume, Labels: set.Labels()}, Spec: *claim,
		}}
	}
	return out, errors.Join(specErr, templateErr)
}

// running is the number of pods that are to run. The configuration names all Replicas even while they are suspended.
func running(c *slinkyv1beta1.Controller) int32 {
	if c.Suspended() {
		return 0
	}
	return c.Replicas()
}

// serviceName is the Service that the pods have their host names from.
func serviceName(c *slinkyv1beta1.Controller) string {
	if c.Replicas() > 1 {
		return c.InternalServiceName()
	}
	return c.ServiceName()
}

// antiAffinity keeps slurmctlds of the same cluster off the same Kubernetes node.
func antiAffinity(c *slinkyv1beta1.Controller) *corev1.Affinity {
	if c.Replicas() == 1 {
		return nil
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: Labels(c).Selector()}, TopologyKey: corev1.LabelHostname,
	}}}}
}

// podSpec reports the mistakes in all containers at once.
func podSpec(in Input) (corev1.PodSpec, error) {
	c := in.Controller
	slurmctld, err := overlay.Container(slurmctld(in), c.Spec.Slurmctld, "spec.slurmctld")
	errs := []error{err}
	logfile := pod.Logfile(slurmctld.Image, slinkyv1beta1.NameSlurmctld)
	logfile.SecurityContext = pod.Restricted(pod.SlurmUID)
	logfile, err = overlay.Container(logfile, c.Spec.Logfile, "spec.logfile")
	errs = append(errs, err)
	sidecars := []corev1.Container{logfile}
	if c.Spec.InplaceReconfigure {
		reconfigure := pod.Reconfigure(slurmctld.Image, []corev1.VolumeMount{
			{Name: pod.EtcVolume, MountPath: pod.EtcSlurm, ReadOnly: true}, {Name: authVolume, MountPath: authDir},
		})
		reconfigure.SecurityContext = pod.Restricted(pod.SlurmUID)
		reconfigure, err = overlay.Container(reconfigure, c.Spec.Reconfigure, "spec.reconfigure")
		errs = append(errs, err)
		sidecars = append(sidecars, reconfigure)
	}
	// slurmctld reports the end of a step to its srun, by the name of the worker or login pod that it runs on. A name that does not resolve
	// holds up slurmctld for ten seconds, with the lock on all nodes.
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext:              pod.RestrictedPod(pod.SlurmUID),
		DNSConfig:                    &corev1.PodDNSConfig{Searches: []string{c.WorkerDomain(in.ClusterDomain), c.LoginDomain(in.ClusterDomain)}},
		InitContainers:               sidecars,
		Containers:                   []corev1.Container{slurmctld},
		Volumes:                      volumes(c),
		Affinity:                     antiAffinity(c),
	}
	errs = append(errs, pod.AddUsers(&spec, c.Spec.Jail, nil, in.Images.Slurmctld(), pod.SlurmUID), pod.AddMunge(&spec, slinkyv1beta1.NameSlurmctld, c.Spec.Munge, in.Images.Munge()),
		pod.AddSSSD(&spec, c.Spec.SSSD, in.Images.Login(), "spec.sssd"))
	return spec, errors.Join(errs...)
}

func slurmctld(in Input) corev1.Container {
	ready := "/readyz"
	if in.Controller.Replicas() > 1 {
		// A backup is ready for its task even when it is not active.
		ready = "/livez"
	}
	return corev1.Container{
		Name:            slinkyv1beta1.NameSlurmctld,
		Image:           in.Images.Slurmctld(),
		Ports:           []corev1.ContainerPort{{Name: slinkyv1beta1.NameSlurmctld, ContainerPort: in.Controller.ServicePort(), Protocol: corev1.ProtocolTCP}},
		SecurityContext: pod.Restricted(pod.SlurmUID),
		// A slurmctld that does not accept its configuration writes why in its last lines; the pod's status has them then.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		// Before its very first start slurmctld waits for slurmdbd, which waits for its database.
		StartupProbe:   &corev1.Probe{ProbeHandler: get("/livez"), TimeoutSeconds: pod.BusySeconds, FailureThreshold: 600, PeriodSeconds: 1},
		LivenessProbe:  &corev1.Probe{ProbeHandler: get("/livez"), TimeoutSeconds: pod.BusySeconds, FailureThreshold: 6, PeriodSeconds: 10},
		ReadinessProbe: &corev1.Probe{ProbeHandler: get(ready), TimeoutSeconds: pod.BusySeconds, PeriodSeconds: 2},
		VolumeMounts: []corev1.VolumeMount{
			{Name: pod.EtcVolume, MountPath: pod.EtcSlurm, ReadOnly: true},
			{Name: runVolume, MountPath: "/run"},
			{Name: authVolume, MountPath: authDir},
			{Name: stateVolume, MountPath: StateDir(in.Controller)},
			{Name: pod.LogVolume, MountPath: pod.LogDir},
			pod.TmpMount(),
		},
	}
}

// get asks slurmctld's own health endpoints, which exist since Slurm 25.11.
func get(path string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(slinkyv1beta1.NameSlurmctld)}}
}

func volumes(c *slinkyv1beta1.Controller) []corev1.Volume {
	sources := []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: c.ConfigName()}}},
	}
	sources = append(sources, pod.SlurmKey(*c.AuthSlurmRef())...)
	sources = append(sources, pod.SecretItem(*c.AuthJwtRef(), pod.JwtKeyFile))
	if ref := c.Spec.JwksKeyRef; ref != nil {
		sources = append(sources, pod.ConfigMapItem(*ref, pod.JwksFile))
	}
	for _, name := range ReferencedConfigMaps(c) {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}})
	}
	out := []corev1.Volume{
		pod.Projected(pod.EtcVolume, etcMode, sources...),
		pod.EmptyDir(runVolume, true),
		pod.EmptyDir(authVolume, false),
		pod.LogFileVolume(),
		pod.Tmp(),
	}
	switch {
	case c.ExistingClaim() != "":
		out = append(out, corev1.Volume{Name: stateVolume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.ExistingClaim()},
		}})
	case !c.Persistent():
		out = append(out, pod.EmptyDir(stateVolume, false))
	}
	return out
}

// ReferencedConfigMaps returns the names of the ConfigMaps whose keys become files in /etc/slurm, sorted: the order in
// which a user lists them must not restart slurmctld.
func ReferencedConfigMaps(c *slinkyv1beta1.Controller) []string {
	var names []string
	for _, list := range [][]slinkyv1beta1.ObjectReference{
		c.Spec.ConfigFileRefs, c.Spec.PrologScriptRefs, c.Spec.EpilogScriptRefs, c.Spec.PrologSlurmctldScriptRefs, c.Spec.EpilogSlurmctldScriptRefs,
	} {
		for _, ref := range list {
			names = append(names, ref.Name)
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}

// ExistingClaimPath is the field that names the claim with slurmctld's state.
const ExistingClaimPath = "spec.persistence.existingClaim"

// CheckSharedClaim returns a problem when the slurmctlds of a Controller with backups cannot all have the claim at the same
// time.
func CheckSharedClaim(claim *corev1.PersistentVolumeClaim) error {
	if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
		return nil
	}
	return problem.Errorf(ExistingClaimPath, slinkyv1beta1.ReasonInvalidSpec, "PersistentVolumeClaim %s has access modes %v and not ReadWriteMany; "+
		"all slurmctlds need it at the same time", claim.Name, claim.Spec.AccessModes)
}
