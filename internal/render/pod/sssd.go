// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	_ "embed"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
)

// SSSDName is the name of the sidecar with SSSD.
const SSSDName = "sssd"

// LDAPCADir has the certificates that SSSD trusts an LDAP server by. What starts it reads all files there.
const LDAPCADir = "/etc/ldap/ca"

// Volumes of SSSD, and where they are mounted. libnss-sss looks for the socket in sssdPipesDir.
const (
	sssdConfVolume        = "sssd-conf"
	sssdConfDir           = "/mnt/sssd"
	sssdAuthoritiesVolume = "sssd-authorities"
	sssdPipesVolume       = "sssd-pipes"
	sssdPipesDir          = "/var/lib/sss/pipes"
)

//go:embed sssd.sh
var sssdScript string

// AddSSSD adds a sidecar with SSSD to a pod spec, before the others, and its socket to the first container; a nil sssd adds nothing. path
// is the field's. The error joins problem.Problems.
func AddSSSD(spec *corev1.PodSpec, sssd *slinkyv1beta1.SSSD, image, path string) error {
	if sssd == nil {
		return nil
	}
	generated, volumes := sssdSidecar(image), sssdVolumes(sssd)
	if name := sssd.Authorities(); name != "" {
		generated.VolumeMounts = append(generated.VolumeMounts, corev1.VolumeMount{Name: sssdAuthoritiesVolume, MountPath: LDAPCADir, ReadOnly: true})
		volumes = append(volumes, corev1.Volume{Name: sssdAuthoritiesVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			// The operator waits for it. When it goes later, no daemon is to wait with its pod.
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: new(true),
		}}})
	}
	sidecar, err := overlay.Container(generated, sssd.Container, path+".container")
	if err != nil {
		return err
	}
	daemon := &spec.Containers[0]
	daemon.VolumeMounts = append(daemon.VolumeMounts, corev1.VolumeMount{Name: sssdPipesVolume, MountPath: sssdPipesDir, ReadOnly: true})
	spec.InitContainers = append([]corev1.Container{sidecar}, spec.InitContainers...)
	spec.Volumes = append(spec.Volumes, volumes...)
	return nil
}

// sssdSidecar is a native sidecar (KEP-753). Debian builds SSSD for root only (docs/decisions/028-slurmctld-asks-sssd-beside-it.md). The
// daemon starts when SSSD answers, since slurmctld looks up AllowGroups when it starts, and again after GroupUpdateTime only; but it starts
// without SSSD after ten seconds.
func sssdSidecar(image string) corev1.Container {
	context := Restricted(0)
	context.RunAsNonRoot, context.ReadOnlyRootFilesystem = new(false), nil
	wait := "timeout 10 sh -c 'until test -S " + sssdPipesDir + "/nss; do sleep 0.2; done' || true"
	return corev1.Container{
		Name:            SSSDName,
		Image:           image,
		Command:         []string{"tini", "-g", "--", "sh", "-c", sssdScript, "sssd"},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		SecurityContext: context,
		Lifecycle:       &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", wait}}}},
		// An SSSD that refuses sssd.conf writes that in its last lines.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: sssdConfVolume, MountPath: sssdConfDir, ReadOnly: true},
			{Name: sssdPipesVolume, MountPath: sssdPipesDir},
		},
	}
}

// sssdVolumes are those of sssd.conf and of the socket.
func sssdVolumes(sssd *slinkyv1beta1.SSSD) []corev1.Volume {
	return []corev1.Volume{
		{Name: sssdConfVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: sssd.ConfRef.Name, Optional: new(true), DefaultMode: new(int32(0o400)), Items: []corev1.KeyToPath{{Key: sssd.ConfRef.Key, Path: "sssd.conf"}},
		}}},
		EmptyDir(sssdPipesVolume, true),
	}
}

// SSSDAnnotations adds the digest of sssd.conf to the annotations of a pod, so that another one replaces it.
func SSSDAnnotations(annotations map[string]string, sssd *slinkyv1beta1.SSSD, digest string) {
	if sssd != nil {
		annotations[slinkyv1beta1.AnnotationSssdConfHash] = digest
	}
}
