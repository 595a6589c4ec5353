// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	_ "embed"
	"slices"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
)

// MungeName is the name of the sidecar with munged.
const MungeName = "munge"

// MungeSocket is munged's socket, where libmunge looks for it (munged(8), --socket).
const MungeSocket = mungeRunDir + "/munge.socket.2"

// MungeUID is the user and group id of munged in the image.
const MungeUID = int64(402)

// Volumes of munged, and where they are mounted.
const (
	mungeKeyVolume    = "munge-key"
	mungeKeyDir       = "/mnt/munge-key"
	mungeSocketVolume = "munge-socket"
	mungeRunDir       = "/run/munge"
	mungeCopyVolume   = "munge-etc"
	mungeCopyDir      = "/etc/munge"
)

//go:embed munge.sh
var mungeScript string

// AddMunge adds a sidecar with munged to a pod spec, and its socket to the container of that name; a nil munge adds nothing. The
// error joins problem.Problems.
func AddMunge(spec *corev1.PodSpec, container string, munge *slinkyv1beta1.Munge, image string) error {
	if munge == nil {
		return nil
	}
	sidecar, err := overlay.Container(munged(image), munge.Container, "spec.munge.container")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return nil
	}
	// Read-only: a container that could write there could replace munged's socket by its own.
	spec.Containers[i].VolumeMounts = append(spec.Containers[i].VolumeMounts,
		corev1.VolumeMount{Name: mungeSocketVolume, MountPath: mungeRunDir, ReadOnly: true})
	spec.InitContainers = append(spec.InitContainers, sidecar)
	spec.Volumes = append(spec.Volumes, mungeVolumes(munge)...)
	return nil
}

// munged is a native sidecar (KEP-753). The daemon starts when the socket is there: slurmctld ends without it. The command is
// not that of the image, so that any image with munged and a shell will do, whatever its entrypoint needs root for.
func munged(image string) corev1.Container {
	socket := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-S", MungeSocket}}}
	answer := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"munge", "-n"}}}
	return corev1.Container{
		Name:            MungeName,
		Image:           image,
		Command:         []string{"sh", "-c", mungeScript, "munge"},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		SecurityContext: Restricted(MungeUID),
		// Each probe is a process beside users' jobs, so there is no readiness probe: it would show no more than these two.
		StartupProbe:  &corev1.Probe{ProbeHandler: socket, PeriodSeconds: 1, TimeoutSeconds: BusySeconds, FailureThreshold: 120},
		LivenessProbe: &corev1.Probe{ProbeHandler: answer, PeriodSeconds: 60, TimeoutSeconds: BusySeconds},
		// A munged that refuses its key writes that in its last lines.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: mungeKeyVolume, MountPath: mungeKeyDir, ReadOnly: true},
			{Name: mungeCopyVolume, MountPath: mungeCopyDir},
			{Name: mungeSocketVolume, MountPath: mungeRunDir},
		},
	}
}

// mungeVolumes are those of the key, of its copy and of the socket. munged accepts no key that is a symbolic link or belongs to another user, as
// keys of a Secret do, so it has a copy. It refuses directories that others may write to without the sticky bit; new file systems in
// memory have it.
func mungeVolumes(munge *slinkyv1beta1.Munge) []corev1.Volume {
	return []corev1.Volume{
		{Name: mungeKeyVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: munge.KeyRef.Name, Items: []corev1.KeyToPath{{Key: munge.KeyRef.Key, Path: slinkyv1beta1.MungeKeyName}},
			// Root's, in pods of root. No other container mounts it.
			DefaultMode: new(int32(0o444)),
		}}},
		EmptyDir(mungeCopyVolume, true),
		EmptyDir(mungeSocketVolume, true),
	}
}

// MungeAnnotations adds the digest of the munge key to the annotations of a pod, so that another key replaces it.
func MungeAnnotations(annotations map[string]string, munge *slinkyv1beta1.Munge, digest string) {
	if munge != nil {
		annotations[slinkyv1beta1.AnnotationMungeKeyHash] = digest
	}
}
